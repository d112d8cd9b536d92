module example.com/gangs

go 1.24

require (
	k8s.io/api v0.33.13
	k8s.io/apimachinery v0.33.13
	k8s.io/kubernetes v1.33.13
	sigs.k8s.io/scheduler-plugins v0.33.5
)
