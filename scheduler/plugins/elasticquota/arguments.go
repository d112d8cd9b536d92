package elasticquota

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Values of Arguments.ElasticQuotas.
const (
	// ElasticQuotasAuto reads ElasticQuotas if their CustomResourceDefinition is installed.
	ElasticQuotasAuto = "Auto"
	// ElasticQuotasIgnore reads the quotas of the arguments only.
	ElasticQuotasIgnore = "Ignore"
)

// Values of Arguments.Preemption.
const (
	// PreemptionEvict evicts pods to make room for pods that have a right to it.
	PreemptionEvict = "Evict"
	// PreemptionNever has pods wait for room.
	PreemptionNever = "Never"
)

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// Quotas are the teams with their capacity.
	Quotas []Quota `json:"quotas,omitempty"`
	// ElasticQuotas selects whether quotas are also read from ElasticQuotas of
	// scheduling.x-k8s.io/v1alpha1: Auto (the default), if their CustomResourceDefinition is
	// installed, or Ignore. Each is its namespace's quota, unless Quotas has one for that namespace.
	ElasticQuotas string `json:"elasticQuotas,omitempty"`
	// Preemption is the action if no node has room for a pod that may evict other pods: Evict (the
	// default), or Never.
	Preemption string `json:"preemption,omitempty"`
	// PreemptibleLabel is the label that protects a pod from the plugin if its value is "false",
	// "pmk-sched.io/preemptible" by default. Such pods fit into the min of their quota, or wait.
	PreemptibleLabel string `json:"preemptibleLabel,omitempty"`
}

// Quota is a team's capacity.
type Quota struct {
	// Name is the team's name, in messages and metrics.
	Name string `json:"name"`
	// Namespaces are the namespaces of the team's pods. A namespace has one quota.
	Namespaces []string `json:"namespaces"`
	// Min is guaranteed: a pod that fits into it gets the room of pods that borrow. Resources that are
	// only in max are 0.
	Min corev1.ResourceList `json:"min,omitempty"`
	// Max is never exceeded by the pods that this scheduler places. An extender may exceed it in
	// bursts. A resource that it does not have is not limited.
	Max corev1.ResourceList `json:"max,omitempty"`
}

func decode(args scheduler.Arguments) (*Arguments, []*quota, error) {
	a := &Arguments{ElasticQuotas: ElasticQuotasAuto, Preemption: PreemptionEvict,
		PreemptibleLabel: "pmk-sched.io/preemptible"}
	if err := args.Decode(a); err != nil {
		return nil, nil, err
	}
	if a.ElasticQuotas != ElasticQuotasAuto && a.ElasticQuotas != ElasticQuotasIgnore {
		return nil, nil, fmt.Errorf("elasticQuotas: %q is neither %s nor %s", a.ElasticQuotas, ElasticQuotasAuto,
			ElasticQuotasIgnore)
	}
	if a.Preemption != PreemptionEvict && a.Preemption != PreemptionNever {
		return nil, nil, fmt.Errorf("preemption: %q is neither %s nor %s", a.Preemption, PreemptionEvict, PreemptionNever)
	}
	if wrong := validation.IsQualifiedName(a.PreemptibleLabel); len(wrong) > 0 {
		return nil, nil, fmt.Errorf("preemptibleLabel: %q is not a label key: %s", a.PreemptibleLabel,
			strings.Join(wrong, "; "))
	}
	var quotas []*quota
	names, namespaces := map[string]bool{}, map[string]bool{}
	for i, q := range a.Quotas {
		field := fmt.Sprintf("quotas[%d]", i)
		if q.Name == "" || len(q.Namespaces) == 0 {
			return nil, nil, fmt.Errorf("%s: name and namespaces are required", field)
		}
		if names[q.Name] {
			return nil, nil, fmt.Errorf("%s.name: %q is used twice", field, q.Name)
		}
		names[q.Name] = true
		for _, namespace := range q.Namespaces {
			if namespaces[namespace] {
				return nil, nil, fmt.Errorf("%s.namespaces: %q has two quotas", field, namespace)
			}
			namespaces[namespace] = true
		}
		made, err := newQuota(q.Name, q.Namespaces, q.Min, q.Max)
		if err != nil {
			return nil, nil, fmt.Errorf("%s.%w", field, err)
		}
		quotas = append(quotas, made)
	}
	return a, quotas, nil
}
