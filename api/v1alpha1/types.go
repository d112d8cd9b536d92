// Package v1alpha1 contains the API type CustomScheduler: the content of pmk-sched.yaml, which
// command-line flags change and a revision records, and the object that `pmk-sched controller`
// deploys. It does no I/O.
//
// The file and the object are one type. A field with the tag object names a file on the machine on
// which a command runs: it is valid in a file, and in an object it is refused with the tag's text.
// A field with the tag file may name such a file too. In a recorded request, which is a third form,
// the file is not read: see [CustomScheduler.ValidateRecorded].
package v1alpha1

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// APIVersion is the apiVersion in pmk-sched.yaml.
	APIVersion = "pmk-sched.io/v1alpha1"
	// Kind is the kind of a scheduler in pmk-sched.yaml.
	Kind = "CustomScheduler"
	// Auto leaves a field to pmk-sched, as an empty field does.
	Auto = "auto"
)

// NoPriorityClass is the value of [CustomSchedulerSpec.PriorityClassName] for pods without one.
const NoPriorityClass = "none"

// NoSignature is the value of [Image.RequireSignature] that lifts a requirement.
const NoSignature = "none"

// CustomScheduler is a scheduler that runs alongside the default scheduler, or replaces it.
type CustomScheduler struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata contains the name, which pods put in spec.schedulerName, and the namespace of the
	// objects. The default namespace is kube-system.
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              CustomSchedulerSpec `json:"spec,omitzero"`
	// Status is set by `pmk-sched controller`. A file has none.
	Status CustomSchedulerStatus `json:"status,omitzero" jsonschema:"-"`
}

// CustomSchedulerSpec describes the scheduler. An empty field is decided by pmk-sched.
type CustomSchedulerSpec struct {
	// Source is the source code of the kube-scheduler and its plugins.
	Source Source `json:"source,omitzero" yaml:"source"`
	// Image is the image of the scheduler.
	Image Image `json:"image,omitzero" yaml:"image"`
	// Configuration is the scheduler's configuration. The default is the preset default.
	Configuration Configuration `json:"configuration,omitzero" yaml:"configuration"`
	// Extenders are called by the scheduler after the configuration's extenders, in this order.
	Extenders []Extender `json:"extenders,omitempty" yaml:"extenders"`
	// Route makes new pods use the scheduler that name no scheduler of their own.
	Route *Route `json:"route,omitempty" yaml:"route"`
	// Rollout gives the scheduler the pods of its route step by step. `pmk-sched deploy` ignores it.
	Rollout *Rollout `json:"rollout,omitempty" yaml:"rollout"`
	// Credentials for the scheduler: node, node-inline, hostpath, serviceaccount or auto.
	Credentials string `json:"credentials,omitempty" yaml:"credentials" jsonschema:"enum=node,enum=node-inline,enum=hostpath,enum=serviceaccount,enum=auto"`
	// Replicas is a number or auto: one for each control-plane node.
	Replicas AutoInt `json:"replicas,omitempty" yaml:"replicas"`
	// NodeSelector selects nodes for the scheduler. The default is the label of control-plane nodes.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" yaml:"nodeSelector"`
	// AnyNode lets the scheduler run on every node, for managed clusters. It excludes NodeSelector.
	AnyNode bool `json:"anyNode,omitempty" yaml:"anyNode"`
	// Tolerations for the pods that run the scheduler and its extenders, in addition to those for the
	// taints of control-plane nodes and for CriticalAddonsOnly.
	Tolerations []Toleration `json:"tolerations,omitempty" yaml:"tolerations"`
	// PriorityClassName is the priority class for the pods that run the scheduler and its extenders,
	// or none. The default is system-cluster-critical.
	PriorityClassName string `json:"priorityClassName,omitempty" yaml:"priorityClassName"`
	// Args are kube-scheduler flags, --name=value each, that its configuration cannot express.
	Args []string `json:"args,omitempty" yaml:"args"`
	// Ports on which the scheduler listens.
	Ports Ports `json:"ports,omitzero" yaml:"ports"`
	// Resources of the container of the scheduler.
	Resources Resources `json:"resources,omitzero" yaml:"resources"`
	// RBAC adds permissions to the ones that pmk-sched grants.
	RBAC RBAC `json:"rbac,omitzero" yaml:"rbac"`

	// The fields below are for `pmk-sched controller`. Other commands ignore them.

	// Releases maps API server releases to images.
	Releases *Releases `json:"releases,omitempty" yaml:"releases"`
	// UpgradePolicy is Automatic, or Manual: the controller keeps the deployed release and reports an
	// upgrade in the condition UpgradeAvailable. The default is Automatic.
	UpgradePolicy string `json:"upgradePolicy,omitempty" yaml:"upgradePolicy" jsonschema:"enum=Automatic,enum=Manual"`
	// DeletionPolicy is Delete, or Orphan: the scheduler stays when the object is deleted. The default
	// is Delete.
	DeletionPolicy string `json:"deletionPolicy,omitempty" yaml:"deletionPolicy" jsonschema:"enum=Delete,enum=Orphan"`
}

// UsesOwnImage reports whether a request gets the image of the release's own kube-scheduler: it
// names none, and nothing to build one from.
func (s *CustomSchedulerSpec) UsesOwnImage() bool {
	i := s.Image
	return i.Reference+i.Repository+i.Base+i.Busybox+s.Source.From == "" &&
		len(s.Source.Plugins)+len(s.Source.Imports) == 0
}

// Source is the source code of the kube-scheduler and its plugins.
type Source struct {
	// Branch is the release to build, such as v1.24.3, or auto: the API server's release.
	Branch string `json:"branch,omitempty" yaml:"branch"`
	// From is a directory or a git URL with the Kubernetes sources, instead of the module proxy.
	From string `json:"from,omitempty" yaml:"from" file:"build"`
	// Go is the Go version to compile with, such as 1.26.8, a minor for its newest patch, or newest.
	// The default is the version that the release names.
	Go string `json:"go,omitempty" yaml:"go"`
	// Plugins are compiled in.
	Plugins []Plugin `json:"plugins,omitempty" yaml:"plugins"`
	// Imports are Go packages to import for their side effects, such as schemes.
	Imports []string `json:"imports,omitempty" yaml:"imports"`
}

// Plugin is a plugin to compile in. Exactly one of Builtin, Module and Path is required.
type Plugin struct {
	// Builtin is the name of a bundled plugin.
	Builtin string `json:"builtin,omitempty" yaml:"builtin"`
	// Name for the Builtin plugin in the configuration, if another plugin has its name.
	Name string `json:"name,omitempty" yaml:"name"`
	// Module is a Go module with its version, such as sigs.k8s.io/scheduler-plugins@v0.32.7.
	Module string `json:"module,omitempty" yaml:"module"`
	// Package is the plugin's package in Module.
	Package string `json:"package,omitempty" yaml:"package"`
	// Path is the plugin's directory, relative to the file.
	Path string `json:"path,omitempty" yaml:"path" file:"Content" object:"the plugin is part of the image; name it with builtin or module"`
	// Weight multiplies the plugin's scores.
	Weight int `json:"weight,omitempty" yaml:"weight"`
	// Args are the plugin's arguments in the configuration.
	Args Document `json:"args,omitempty" yaml:"args"`
	// Enable lists the extension points at which the plugin is enabled. The default is all that it
	// implements.
	Enable *[]string `json:"enable,omitempty" yaml:"enable"`

	// Content is the archive of the sources in Path in a recorded request.
	Content []byte `json:"content,omitempty" yaml:"-" jsonschema:"-"`
}

// Image is the image of the scheduler.
type Image struct {
	// Reference is the complete image name. It takes precedence over Repository and Tag.
	Reference string `json:"reference,omitempty" yaml:"reference"`
	// Repository is the image name without a tag.
	Repository string `json:"repository,omitempty" yaml:"repository"`
	// Tag of the image. The default is the release, followed by a hash of the plugins.
	Tag string `json:"tag,omitempty" yaml:"tag"`
	// Base is the image to build on.
	Base string `json:"base,omitempty" yaml:"base" file:"build"`
	// Busybox is the path to a static busybox to build on, without a registry. It takes precedence
	// over Base.
	Busybox string `json:"busybox,omitempty" yaml:"busybox" file:"build" object:"the controller builds no image"`
	// RequireSignature is a file with the public key that must have signed the image, relative to the
	// file, or none, which lifts the deployed scheduler's requirement. In a recorded request it is the
	// key itself.
	RequireSignature string `json:"requireSignature,omitempty" yaml:"requireSignature" file:"self"`
	// Platforms to build the image for, such as linux/amd64. The default is this machine's platform.
	Platforms []string `json:"platforms,omitempty" yaml:"platforms"`
	// PullPolicy is IfNotPresent, Always or Never. The default is the cluster's default.
	PullPolicy string `json:"pullPolicy,omitempty" yaml:"pullPolicy" jsonschema:"enum=IfNotPresent,enum=Always,enum=Never"`
}

// Configuration is the scheduler's configuration. At most one of Preset, File and Inline is given
// by the user.
type Configuration struct {
	// Preset names a built-in configuration.
	Preset string `json:"preset,omitempty" yaml:"preset"`
	// File is a KubeSchedulerConfiguration or a legacy Policy, relative to the file. In a recorded
	// request it names the file whose content is Inline.
	File string `json:"file,omitempty" yaml:"file" file:"Inline" object:"write the configuration in spec.configuration.inline"`
	// Inline is the configuration itself.
	Inline Document `json:"inline,omitempty" yaml:"inline"`
	// Lossy drops the parts that cannot be converted to the release, with a warning for each.
	Lossy bool `json:"lossy,omitempty" yaml:"lossy"`
	// PolicyConfigMap makes the scheduler read predicates, priorities and extenders from a legacy
	// Policy in a ConfigMap: 1.20, 1.21 and, in place of the default scheduler, 1.22.
	PolicyConfigMap bool `json:"policyConfigMap,omitempty" yaml:"policyConfigMap"`
}

// Toleration lets pods run on nodes with a taint, as in a pod.
type Toleration struct {
	// Key is the taint's key. Empty: every key, with operator Exists.
	Key string `json:"key,omitempty" yaml:"key"`
	// Operator is Equal (the default) or Exists, which accepts any value. Lt and Gt compare numbers
	// where the API server has the feature gate TaintTolerationComparisonOperators.
	Operator corev1.TolerationOperator `json:"operator,omitempty" yaml:"operator" jsonschema:"enum=Equal,enum=Exists,enum=Lt,enum=Gt"`
	// Value is the taint's value.
	Value string `json:"value,omitempty" yaml:"value"`
	// Effect is the taint's effect. Empty: every effect.
	Effect corev1.TaintEffect `json:"effect,omitempty" yaml:"effect" jsonschema:"enum=NoSchedule,enum=PreferNoSchedule,enum=NoExecute"`
	// TolerationSeconds is the time that a pod stays on a node after a taint with the effect NoExecute
	// is added. The default is forever.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty" yaml:"tolerationSeconds"`
}

// PodTolerations returns the tolerations as they are in a pod.
func (s CustomSchedulerSpec) PodTolerations() []corev1.Toleration {
	var list []corev1.Toleration
	for _, t := range s.Tolerations {
		list = append(list, corev1.Toleration(t))
	}
	return list
}

// Ports are the scheduler's ports.
type Ports struct {
	// Secure is the port for health checks and metrics, or auto: the first free port from 10260.
	Secure AutoInt `json:"secure,omitempty" yaml:"secure"`
}

// Resources of the container of the scheduler.
type Resources struct {
	// Requests by resource name, such as cpu: 100m.
	Requests Quantities `json:"requests,omitempty" yaml:"requests"`
	// Limits by resource name, such as memory: 256Mi.
	Limits Quantities `json:"limits,omitempty" yaml:"limits"`
}

// RBAC adds permissions to the ones that the default scheduler and the bundled plugins need.
type RBAC struct {
	// Rules as in a ClusterRole.
	Rules Rules `json:"rules,omitempty" yaml:"rules"`
	// AuthenticationReader binds the Role extension-apiserver-authentication-reader in kube-system,
	// without which /metrics accepts tokens but no client certificates. The default is true, and
	// false where the cluster refuses a RoleBinding in kube-system.
	AuthenticationReader *bool `json:"authenticationReader,omitempty" yaml:"authenticationReader"`
}

// AnnotationOwner is the object for which `pmk-sched controller` deployed a recorded request:
// CustomScheduler/namespace/name.
const AnnotationOwner = "pmk-sched.io/owner"

// AnnotationFile is the path to the pmk-sched.yaml from which a recorded request was read.
const AnnotationFile = "pmk-sched.io/file"

// Recipe describes how an image was built, to build the next one in the same way: fields of
// [Source] and [Image].
type Recipe struct {
	From      string   `json:"from,omitempty"`
	Go        string   `json:"go,omitempty"`
	Plugins   []Plugin `json:"plugins,omitempty"`
	Imports   []string `json:"imports,omitempty"`
	Base      string   `json:"base,omitempty"`
	Busybox   string   `json:"busybox,omitempty"`
	Platforms []string `json:"platforms,omitempty"`
}

// Complete sets the request fields that the user left empty.
func (r *Recipe) Complete(s *CustomSchedulerSpec) {
	if s.Source.From == "" {
		s.Source.From = r.From
	}
	if s.Source.Go == "" {
		s.Source.Go = r.Go
	}
	if len(s.Source.Plugins) == 0 {
		s.Source.Plugins = r.Plugins
	}
	if len(s.Source.Imports) == 0 {
		s.Source.Imports = r.Imports
	}
	if s.Image.Base == "" && s.Image.Busybox == "" {
		s.Image.Base, s.Image.Busybox = r.Base, r.Busybox
	}
	if len(s.Image.Platforms) == 0 {
		s.Image.Platforms = r.Platforms
	}
}

// DeepCopy returns a copy that shares nothing with s.
func (s *CustomScheduler) DeepCopy() *CustomScheduler {
	made := &CustomScheduler{}
	// Both calls fail only for types that JSON cannot represent. A request has no such types.
	text, _ := json.Marshal(s)
	_ = json.Unmarshal(text, made)
	for i, e := range s.Spec.Extenders {
		if e.TLSConfig != nil {
			made.Spec.Extenders[i].TLSConfig.KeyData = slices.Clone(e.TLSConfig.KeyData)
		}
	}
	return made
}
