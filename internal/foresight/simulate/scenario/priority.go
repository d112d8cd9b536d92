package scenario

import (
	"encoding/json"
	"strconv"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Priorities are the PriorityClasses of a cluster by name. They replace, for added pods, the
// admission plugin Priority of the cluster: a simulation runs without it.
type Priorities map[string]map[string]any

// Set sets the priority of a pod that does not have one. The error is about the user's input
// (package problem).
func (p Priorities) Set(pod map[string]any) error {
	spec := part(pod, "spec")
	name, _ := spec["priorityClassName"].(string)
	class := p[name]
	switch {
	case name == "system-node-critical" && class == nil: // built-in classes of every cluster
		class = object{"value": json.Number(strconv.Itoa(2000001000))}
	case name == "system-cluster-critical" && class == nil:
		class = object{"value": json.Number(strconv.Itoa(2000000000))}
	case name == "":
		for _, c := range p {
			if c["globalDefault"] == true {
				class = c
				spec["priorityClassName"] = part(c, "metadata")["name"]
			}
		}
	case class == nil:
		metadata := part(pod, "metadata")
		return problem.Invalidf("add its manifest", "pod %v/%v: there is no PriorityClass %s", metadata["namespace"],
			metadata["name"], name)
	}
	if value := class["value"]; value != nil {
		spec["priority"] = value
	}
	if policy := class["preemptionPolicy"]; policy != nil && spec["preemptionPolicy"] == nil {
		spec["preemptionPolicy"] = policy
	}
	return nil
}

// NeverPreempt makes a pod wait instead of evicting others.
func NeverPreempt(pod map[string]any) {
	specOf(pod)["preemptionPolicy"] = "Never"
}
