package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TestKind is the kind of a file with expectations about a scheduler.
const TestKind = "SchedulingTest"

// DefaultScheduler names the default scheduler, without a configuration, instead of the path to a
// pmk-sched.yaml.
const DefaultScheduler = "default"

// SchedulingTest has a scheduler's expected decisions about a cluster.
type SchedulingTest struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata contains the test's name.
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// Objects are the cluster's objects: paths to files and directories with manifests, objects, or
	// count and object for several of a kind. The default is a snapshot.
	Objects []TestObjects `json:"objects,omitempty" yaml:"objects"`
	// Steps happen in the cluster, as in a file for `pmk-sched simulate run`. The default is that the
	// pending pods are scheduled.
	Steps []TestStep `json:"steps,omitempty" yaml:"steps"`
	// Expect are the expectations, in the state after the steps.
	Expect []Expectation `json:"expect" yaml:"expect"`
}

// Expectation is an expected result. It has exactly one word: node, nodes, nodeLabels, pending,
// evicted, moved or evicts for each pod; spread or requests for all pods together; copies,
// emptyNodes or utilization for the cluster; sameAs for another scheduler.
type Expectation struct {
	// Name for the expectation in the result. The default describes it.
	Name string `json:"name,omitempty" yaml:"name"`
	// Steps replace the file's steps.
	Steps []TestStep `json:"steps,omitempty" yaml:"steps"`

	// Pod is a pattern for the pods' NAMESPACE/NAME, such as shop/web-*. The default namespace is
	// default.
	Pod string `json:"pod,omitempty" yaml:"pod"`
	// Workload is a pattern for the NAMESPACE/NAME or NAMESPACE/KIND/NAME of the pods' controllers.
	Workload string `json:"workload,omitempty" yaml:"workload"`
	// Labels select pods.
	Labels map[string]string `json:"labels,omitempty" yaml:"labels"`

	// Node is a pattern for each pod's node: * is any node.
	Node string `json:"node,omitempty" yaml:"node"`
	// Nodes are patterns for nodes. Each pod gets a node that matches one.
	Nodes []string `json:"nodes,omitempty" yaml:"nodes"`
	// NodeLabels are labels on each pod's node.
	NodeLabels map[string]string `json:"nodeLabels,omitempty" yaml:"nodeLabels"`
	// Pending is a part of the reason that the scheduler gives for not placing each pod. The empty
	// text is any reason.
	Pending *Text `json:"pending,omitempty" yaml:"pending"`
	// Evicted is true if each pod makes room for another, false if it does not.
	Evicted *bool `json:"evicted,omitempty" yaml:"evicted"`
	// Moved is true if each pod leaves the node that it had before, false if it does not.
	Moved *bool `json:"moved,omitempty" yaml:"moved"`
	// Evicts is a pattern for the NAMESPACE/NAME of pods that each pod evicts.
	Evicts string `json:"evicts,omitempty" yaml:"evicts"`
	// Count is the number of pods that have the result. The default is all pods, and at least one.
	Count *Bound `json:"count,omitempty" yaml:"count"`

	// Spread describes how the pods are spread over zones, nodes or other node groups.
	Spread *Spread `json:"spread,omitempty" yaml:"spread"`
	// Requests is the sum of requests from the pods that have a node.
	Requests *Requests `json:"requests,omitempty" yaml:"requests"`

	// Copies is the number of copies that fit of the manifests in the last step, which is add.
	Copies *Bound `json:"copies,omitempty" yaml:"copies"`
	// EmptyNodes is the number of nodes with only DaemonSet pods and static pods.
	EmptyNodes *EmptyNodes `json:"emptyNodes,omitempty" yaml:"emptyNodes"`
	// Utilization is the requested part of a node resource.
	Utilization *Utilization `json:"utilization,omitempty" yaml:"utilization"`

	// SameAs is a scheduler that places the pods, by default all pods, on the same nodes, except for
	// ties.
	SameAs *SameAs `json:"sameAs,omitempty" yaml:"sameAs"`
}

// Limits bound a number. All that are given apply.
type Limits struct {
	// Exactly is the only number.
	Exactly *Amount `json:"exactly,omitempty" yaml:"exactly"`
	// AtLeast is the smallest number.
	AtLeast *Amount `json:"atLeast,omitempty" yaml:"atLeast"`
	// AtMost is the largest number.
	AtMost *Amount `json:"atMost,omitempty" yaml:"atMost"`
	// Above is smaller than the number.
	Above *Amount `json:"above,omitempty" yaml:"above"`
	// Below is larger than the number.
	Below *Amount `json:"below,omitempty" yaml:"below"`
}

// Spread describes how pods are spread over node groups. Limits apply to the number of groups that
// have one of the pods.
type Spread struct {
	// Over is zone, node, or a label key whose values are the groups.
	Over   string `json:"over" yaml:"over"`
	Limits `json:",inline" yaml:",inline"`
	// Each is the number of pods in each group that has one.
	Each *Bound `json:"each,omitempty" yaml:"each"`
}

// Requests is the sum of pod requests.
type Requests struct {
	// Resource is cpu, memory or another resource.
	Resource string `json:"resource" yaml:"resource"`
	Limits   `json:",inline" yaml:",inline"`
}

// EmptyNodes is the number of empty nodes.
type EmptyNodes struct {
	// Labels are labels of the nodes that count.
	Labels map[string]string `json:"labels,omitempty" yaml:"labels"`
	Limits `json:",inline" yaml:",inline"`
}

// Utilization is the requested part of a node resource, from 0 to 1.
type Utilization struct {
	// Resource is cpu, memory, pods or another resource.
	Resource string `json:"resource" yaml:"resource"`
	// Of is each (each node, the default), total (all nodes together), mean, or a percentile over the
	// nodes such as p99.
	Of string `json:"of,omitempty" yaml:"of" jsonschema:"pattern=^(each|total|mean|p[0-9]{1\\,2}|p100)$"`
	// Labels are labels of the nodes that count.
	Labels map[string]string `json:"labels,omitempty" yaml:"labels"`
	Limits `json:",inline" yaml:",inline"`
}

// SameAs is another scheduler, which differs from the tested one in what is given.
type SameAs struct {
	// Scheduler is default, or the path to a pmk-sched.yaml.
	Scheduler string `json:"scheduler,omitempty" yaml:"scheduler"`
	// Preset is the preset for its configuration.
	Preset string `json:"preset,omitempty" yaml:"preset"`
	// Branch is its release.
	Branch string `json:"branch,omitempty" yaml:"branch"`
}
