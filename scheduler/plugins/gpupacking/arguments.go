package gpupacking

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Arguments are the plugin's arguments in the configuration. The defaults are for the gpushare
// device plugin, whose unit is a GiB of GPU memory.
type Arguments struct {
	// Resource is the extended resource that pods request, "aliyun.com/gpu-mem" by default. Less than
	// a device's amount is a share of one device, a multiple of it is a number of whole devices.
	Resource string `json:"resource,omitempty"`
	// Devices describes a node's devices.
	Devices Devices `json:"devices,omitempty"`
	// Annotations are set on a pod before it is bound.
	Annotations Annotations `json:"annotations,omitempty"`
	// ModelLabel is the node label with the model of the devices. Pods that require models by it, in
	// their node selector or node affinity, count in the workload of nodes with these models only.
	ModelLabel string `json:"modelLabel,omitempty"`
	// Workload is the pod mix for which fragmentation is measured. Defaults to the mix of pods in the
	// cluster.
	Workload []Class `json:"workload,omitempty"`
}

// Devices has one of its fields.
type Devices struct {
	// Units is the amount of the resource on one device: 1000 if pods request thousandths.
	Units int64 `json:"units,omitempty"`
	// CountResource is the extended resource with the node's number of devices, which all have the
	// same amount.
	CountResource string `json:"countResource,omitempty"`
}

// Annotations name a pod's devices to the device plugin.
type Annotations struct {
	// Index is the key for the devices' indices, from 0 on: "2", or "0,3".
	Index string `json:"index,omitempty"`
	// Time is the key for the time in nanoseconds, by which device plugins find the next pod. If it
	// is empty, the time is not written.
	Time string `json:"time,omitempty"`
	// Set are more annotations.
	Set map[string]string `json:"set,omitempty"`
}

// Class is the pods of a workload that request the same.
type Class struct {
	// CPU is each pod's CPU request.
	CPU resource.Quantity `json:"cpu,omitempty"`
	// Amount is each pod's request of the resource, at least 1.
	Amount int64 `json:"amount,omitempty"`
	// Models are models of devices of which each pod requires one. Without them it may have any.
	Models []string `json:"models,omitempty"`
	// Weight is their number in relation to the other classes, 1 by default.
	Weight float64 `json:"weight,omitempty"`
}

type settings struct {
	resource, count corev1.ResourceName
	units           int64
	annotations     Annotations
	modelLabel      string
	// workload is nil if it is measured.
	workload workload
}

func decode(args scheduler.Arguments) (*settings, error) {
	var a Arguments
	if err := args.Decode(&a); err != nil {
		return nil, err
	}
	if a.Resource == "" {
		if a.Devices != (Devices{}) || a.Annotations.Index != "" || a.Annotations.Time != "" || len(a.Annotations.Set) > 0 {
			return nil, fmt.Errorf("resource: is required with devices or annotations")
		}
		a.Resource, a.Devices.CountResource = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
		a.Annotations = Annotations{
			Index: "ALIYUN_COM_GPU_MEM_IDX", Time: "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
			Set: map[string]string{"ALIYUN_COM_GPU_MEM_ASSIGNED": "false"},
		}
	}
	for _, name := range []struct{ field, value string }{{"resource", a.Resource}, {
		"devices.countResource", a.Devices.CountResource}} {
		if name.value == "" {
			continue
		}
		if wrong := validation.IsQualifiedName(name.value); len(wrong) > 0 || !strings.Contains(name.value, "/") {
			return nil, fmt.Errorf("%s: %q is not the name of an extended resource, such as example.com/gpu", name.field,
				name.value)
		}
	}
	if a.Devices.Units < 0 {
		return nil, fmt.Errorf("devices.units: %d is less than 1", a.Devices.Units)
	}
	if (a.Devices.Units == 0) == (a.Devices.CountResource == "") {
		return nil, fmt.Errorf("devices: one of units and countResource is required")
	}
	if err := a.Annotations.validate(); err != nil {
		return nil, err
	}
	if wrong := validation.IsQualifiedName(a.ModelLabel); a.ModelLabel != "" && len(wrong) > 0 {
		return nil, fmt.Errorf("modelLabel: %q is not the key of a label: %s", a.ModelLabel, strings.Join(wrong, "; "))
	}
	s := &settings{
		resource: corev1.ResourceName(a.Resource), count: corev1.ResourceName(a.Devices.CountResource),
		units: a.Devices.Units, annotations: a.Annotations, modelLabel: a.ModelLabel,
	}
	var err error
	s.workload, err = fixed(a.Workload, a.ModelLabel)
	return s, err
}

func (a Annotations) validate() error {
	if a.Index == "" {
		return fmt.Errorf("annotations.index: is required")
	}
	keys := map[string]string{a.Index: "annotations.index"}
	if a.Time != "" {
		keys[a.Time] = "annotations.time"
	}
	for key := range a.Set {
		keys[key] = "annotations.set"
	}
	if want := 1 + len(a.Set); a.Time == "" && len(keys) != want || a.Time != "" && len(keys) != want+1 {
		return fmt.Errorf("annotations: a key is given twice")
	}
	for key, field := range keys {
		// The API server converts annotation keys to lower case to validate them.
		if wrong := validation.IsQualifiedName(strings.ToLower(key)); len(wrong) > 0 {
			return fmt.Errorf("%s: %q is not an annotation key: %s", field, key, strings.Join(wrong, "; "))
		}
	}
	return nil
}

func fixed(classes []Class, modelLabel string) (workload, error) {
	var t tally
	for i, c := range classes {
		if c.Weight == 0 {
			c.Weight = 1
		}
		switch {
		case c.Amount < 1:
			return nil, fmt.Errorf("workload[%d].amount: %d is less than 1", i, c.Amount)
		case c.CPU.Sign() < 0:
			return nil, fmt.Errorf("workload[%d].cpu: %s is less than 0", i, c.CPU.String())
		case c.Weight < 0:
			return nil, fmt.Errorf("workload[%d].weight: %v is less than 0", i, c.Weight)
		case len(c.Models) > 0 && modelLabel == "":
			return nil, fmt.Errorf("workload[%d].models: need modelLabel", i)
		}
		t.add(demand{cpu: c.CPU.MilliValue(), gpu: c.Amount}, c.Models, c.Weight)
	}
	return t.workload(), nil
}
