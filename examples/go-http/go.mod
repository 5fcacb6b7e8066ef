module go-http

go 1.22

require catraca-go v0.0.0

replace catraca-go => ../../sdk/go
