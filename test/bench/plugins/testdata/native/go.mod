module example.com/native

go 1.18

require k8s.io/kubernetes v1.24.3
