module catraca-go

go 1.22
