package v1alpha1_test

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

func ExampleDecode() {
	scheduler, err := v1alpha1.Decode([]byte(`apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: packer}
spec:
  configuration: {preset: binpack}
  replicas: auto
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scheduler.Name, scheduler.Spec.Configuration.Preset, scheduler.Validate())

	_, err = v1alpha1.Decode([]byte(`apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
spec:
  replica: 2
`))
	fmt.Println(err)
	// Output:
	// packer binpack <nil>
	// line 4: unknown field replica
}
