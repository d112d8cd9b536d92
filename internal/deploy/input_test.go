package deploy

import "github.com/pmk-sched/pmk-sched/api/v1alpha1"

// PlanInput is the input of a plan. It is exported for the tests of package deploy_test.
type PlanInput struct {
	Name, Namespace string
	Spec            v1alpha1.CustomSchedulerSpec
	Facts
}

// Plan calls [NewPlan].
func (in PlanInput) Plan() (*Plan, error) {
	request := &v1alpha1.CustomScheduler{Spec: in.Spec}
	request.Name, request.Namespace = in.Name, in.Namespace
	return NewPlan(request, in.Facts)
}
