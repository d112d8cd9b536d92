module example.com/samekind

go 1.18

require (
	k8s.io/apimachinery v0.24.3
	k8s.io/kubernetes v1.24.3
)
