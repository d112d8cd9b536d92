package deploy

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Auto leaves a choice to the plan.
const Auto = "auto"

// Credentials with which the scheduler authenticates to the API server.
const (
	// CredentialsNode copies certificate and key of the node's scheduler kubeconfig to a Secret, and
	// the kubeconfig to a ConfigMap that refers to them. The default on a control-plane node.
	CredentialsNode = manifest.ModeNode
	// CredentialsNodeInline copies everything to the ConfigMap, including the key, as in Platform9's
	// article.
	CredentialsNodeInline = manifest.ModeNodeInline
	// CredentialsHostPath mounts the node's own file, so that the scheduler reads a renewed
	// certificate.
	CredentialsHostPath = manifest.ModeHostPath
	// CredentialsServiceAccount mounts a ServiceAccount token. The default elsewhere.
	CredentialsServiceAccount = manifest.ModeServiceAccount
)

// Options of a scheduler, as requested by the user. The zero value of every field except Name and
// Image leaves the choice to [NewPlan].
type Options struct {
	// Name of the scheduler, a DNS label: the spec.schedulerName of pods, and the prefix of every
	// object's name.
	Name string
	// Namespace of the objects. Empty: kube-system.
	Namespace string
	// Image of the scheduler. [image.ReleaseInTag] in it is replaced by the release. If PullPolicy
	// is empty, the cluster's default applies.
	Image, PullPolicy string
	// Architectures of the image: amd64, arm64. Nil: unknown. MissingImage is the reason why no node
	// can get the image, or nil.
	Architectures []string
	MissingImage  error
	// Signature is the required signature of the image, or nil.
	Signature *Signature
	// Branch is the release of the image, "v1.24.3". If it is empty or "auto", the release is the
	// release of the API server.
	Branch string
	// Preset names a built-in configuration; Configuration is the user's own
	// KubeSchedulerConfiguration, ConfigurationName the name of its file for messages. They exclude
	// each other. If neither is set, the preset is "default".
	Preset            string
	Configuration     []byte
	ConfigurationName string
	// Lossy drops the parts of the configuration that cannot be converted to the release, with
	// warnings instead of an error.
	Lossy bool
	// Credentials is one of the Credentials constants. If it is empty or "auto", it is node if the
	// node's scheduler kubeconfig is readable, else serviceaccount.
	Credentials string
	// APIServer is the URL of the API server on the pod network, for the credentials serviceaccount.
	// Empty: the name of its Service, which needs cluster DNS.
	APIServer string
	// Replicas of the scheduler. If it is 0, there is one for each control-plane node.
	Replicas int
	// Port of health and metrics. If it is 0, it is the first port from 10260 that is free on the
	// control-plane nodes.
	Port int
	// NodeSelector selects the nodes of the scheduler. If it is empty, these are the control-plane
	// nodes.
	NodeSelector map[string]string
	// AnyNode lets the scheduler run on every node: for managed clusters, whose control plane has no
	// Node objects.
	AnyNode bool
	// Tolerations of the pods, in addition to those that [NewPlan] chooses.
	Tolerations []corev1.Toleration
	// PriorityClass of the pods. Empty: the manifest's default.
	PriorityClass string
	// Args are flags of kube-scheduler, --name=value each, for settings that the configuration does
	// not have, such as feature gates.
	Args []string
	// Resources of the scheduler's container. Zero: the manifest's default.
	Resources corev1.ResourceRequirements
	// Plugins are compiled into the image. Rules returns the permissions of a plugin by its name;
	// PluginRules are granted in any case.
	Plugins     []profiles.Plugin
	Rules       map[string]manifest.RulesFunc
	PluginRules []rbacv1.PolicyRule
	// Recorded is set if the request comes out of the cluster: PluginRules that are not granted now
	// are confirmed.
	Recorded bool
	// AuthenticationReader is false to leave out the RoleBinding in kube-system. Nil: it is left out
	// if SystemClosed is the reason why the cluster refuses it.
	AuthenticationReader *bool
	SystemClosed         string
	// Extenders are called after the extenders of the configuration. ExtenderClients are the client
	// certificates for extenders, by name.
	Extenders       []profiles.Extender
	ExtenderClients map[string]manifest.ClientCertificate
	// Wirings are extenders that pmk-sched deploys itself; they come after Extenders.
	Wirings []manifest.Wiring
	// PolicyConfigMap makes the scheduler read predicates, priorities and extenders from a legacy
	// Policy in a ConfigMap: 1.20 and 1.21 only.
	PolicyConfigMap bool
	// Request is recorded, to plan the scheduler again. It may be nil.
	Request *v1alpha1.CustomScheduler
	// Version of pmk-sched, recorded in a label.
	Version string
	// Origin and Replaces of the plan, for an upgrade.
	Origin   string
	Replaces int
	// Now is the time at which certificates must be valid.
	Now time.Time
}

// Signature is the required signature of an image.
type Signature struct {
	// Key identifies the public key: base64 of the SHA-256 digest of its DER encoding.
	Key string
	// Err is the reason why the signature is not verified. It is nil if it is.
	Err error
}

// WantsNodeCredentials reports whether the plan may need the node's scheduler kubeconfig, which the
// caller reads before it calls [NewPlan].
func (o Options) WantsNodeCredentials() bool {
	return o.Credentials != CredentialsServiceAccount
}

// Validate checks the values that a request may have and a scheduler may not.
func (o Options) Validate() error {
	switch {
	case o.Name == "":
		return problem.Invalidf("pods name the scheduler in spec.schedulerName", "--name is required")
	case o.Image == "":
		return problem.Invalidf("build an image with `pmk-sched build`", "scheduler %s: --image is required", o.Name)
	case !slices.Contains(append(manifest.Modes(), Auto, ""), o.Credentials):
		return problem.Invalidf("use one of "+strings.Join(manifest.Modes(), ", ")+", or auto",
			"invalid credentials %q", o.Credentials)
	}
	if err := ValidateImage(o.Image, o.PullPolicy); err != nil {
		return err
	}
	if o.Branch != "" && o.Branch != Auto {
		if _, err := versions.Parse(o.Branch); err != nil {
			return err
		}
	}
	return manifest.ValidateName(o.Name)
}

// ValidateImage checks an image and a pull policy. Both may be empty: `replace` can keep the image.
func ValidateImage(reference, pullPolicy string) error {
	switch corev1.PullPolicy(pullPolicy) {
	case corev1.PullIfNotPresent, corev1.PullAlways, corev1.PullNever, "":
	default:
		return problem.Invalidf("use IfNotPresent, Always or Never", "invalid pull policy %q", pullPolicy)
	}
	if reference == "" {
		return nil
	}
	_, err := image.CanonicalName(strings.ReplaceAll(reference, image.ReleaseInTag, "v1"))
	return err
}
