package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Group, Version and Resource identify the objects in the API server.
const (
	Group    = "pmk-sched.io"
	Version  = "v1alpha1"
	Resource = "customschedulers"
)

// RuleNoFile is the CEL rule for fields that are valid in a file only.
const RuleNoFile = "self == ''"

// Finalizer keeps an object until the controller has removed or released its scheduler.
const Finalizer = Group + "/scheduler"

// Values of [CustomSchedulerSpec.UpgradePolicy] and [CustomSchedulerSpec.DeletionPolicy].
const (
	UpgradeAutomatic = "Automatic"
	UpgradeManual    = "Manual"
	DeletionDelete   = "Delete"
	DeletionOrphan   = "Orphan"
)

// Releases is a release index: the image for each release. Exactly one of Items, ConfigMap and OCI
// is required.
type Releases struct {
	// Items are the releases themselves.
	Items []SchedulerRelease `json:"items,omitempty" yaml:"items"`
	// ConfigMap in the object's namespace has the index.
	ConfigMap *ConfigMapKey `json:"configMap,omitempty" yaml:"configMap"`
	// OCI names an index in a registry, with its digest: registry.example.com/releases@sha256:….
	OCI string `json:"oci,omitempty" yaml:"oci"`
	// PublicKey is the PEM-encoded public key that must have signed the index in the registry.
	PublicKey string `json:"publicKey,omitempty" yaml:"publicKey"`
}

// ConfigMapKey is a key in a ConfigMap.
type ConfigMapKey struct {
	// Name of the ConfigMap.
	Name string `json:"name" yaml:"name"`
	// Key in the ConfigMap. The default is releases.yaml.
	Key string `json:"key,omitempty" yaml:"key"`
}

// KeyOrDefault returns the key.
func (k ConfigMapKey) KeyOrDefault() string { return cmp.Or(k.Key, "releases.yaml") }

// Condition types.
const (
	// ConditionReady is true while the current generation's scheduler is deployed and verified.
	ConditionReady = "Ready"
	// ConditionReconciling and ConditionStalled are read by kstatus
	// (sigs.k8s.io/cli-utils/pkg/kstatus/README.md): a change is in progress, or needs the user.
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	// ConditionReleaseMatched is true while the scheduler has the API server's release.
	ConditionReleaseMatched = "ReleaseMatched"
	// ConditionVerified is true if the deployed scheduler has bound a pod.
	ConditionVerified = "Verified"
	// ConditionCredentialsValid is true while the API server accepts the scheduler's credentials.
	ConditionCredentialsValid = "CredentialsValid"
	// ConditionUpgradeAvailable is true if there is another image for the API server's release, and
	// the upgrade policy is Manual.
	ConditionUpgradeAvailable = "UpgradeAvailable"
	// ConditionDrifted is true if others changed one of the scheduler's objects.
	ConditionDrifted = "Drifted"
)

// CustomSchedulerStatus is the state of an object's scheduler.
type CustomSchedulerStatus struct {
	// ObservedGeneration is the object generation that the conditions describe.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Revision is the scheduler's deployed revision.
	Revision int `json:"revision,omitempty"`
	// Release is the deployed release.
	Release *DeployedRelease `json:"release,omitempty"`
	// Rollout is the state of the scheduler's rollout.
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// LastVerified is the last pod that the scheduler bound for the controller.
	LastVerified *Verification `json:"lastVerified,omitempty"`
	// Conditions by type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeployedRelease is a deployed scheduler's release.
type DeployedRelease struct {
	// Server is the API server release for which the image was chosen.
	Server string `json:"server,omitempty"`
	// Scheduler is the scheduler's release.
	Scheduler string `json:"scheduler,omitempty"`
	// Image of the scheduler.
	Image string `json:"image,omitempty"`
	// Checksum of the release in the index.
	Checksum string `json:"checksum,omitempty"`
}

// RolloutStatus is the state of a rollout.
type RolloutStatus struct {
	// Share of the route in percent.
	Share int `json:"share"`
	// Step is the number of the step with that share, of Steps.
	Step  int `json:"step"`
	Steps int `json:"steps"`
	// Verdict is empty while the rollout runs. Reason explains it.
	Verdict string `json:"verdict,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Verification is a pod that a scheduler bound.
type Verification struct {
	// Time at which the pod was bound.
	Time metav1.Time `json:"time,omitzero"`
	// Pod is its namespace and name.
	Pod string `json:"pod,omitempty"`
	// Node is the node that the pod was bound to.
	Node string `json:"node,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (s *CustomScheduler) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// CustomSchedulerList is a list of CustomSchedulers.
type CustomSchedulerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []CustomScheduler `json:"items"`
}

// DeepCopyObject implements [runtime.Object].
func (l *CustomSchedulerList) DeepCopyObject() runtime.Object {
	made := &CustomSchedulerList{TypeMeta: l.TypeMeta, Items: make([]CustomScheduler, len(l.Items))}
	l.DeepCopyInto(&made.ListMeta)
	for i := range l.Items {
		made.Items[i] = *l.Items[i].DeepCopy()
	}
	return made
}

// AddToScheme registers the types.
func AddToScheme(scheme *runtime.Scheme) error {
	version := runtimeschema.GroupVersion{Group: Group, Version: Version}
	scheme.AddKnownTypes(version, &CustomScheduler{}, &CustomSchedulerList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}
