module migration

go 1.22

require (
	catraca-go v0.0.0
	golang.org/x/time v0.8.0
)

replace catraca-go => ../
