package install

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Auto is what a person writes where the choice is left to the plan.
const Auto = "auto"

// Ways in which the scheduler proves to the API server who it is.
const (
	// CredentialsNode: certificate and key of the node's scheduler kubeconfig
	// go into a Secret, the kubeconfig itself into a ConfigMap that refers to
	// them. The default on a master.
	CredentialsNode = manifest.ModeNode
	// CredentialsNodeInline: everything in the ConfigMap, key included, as in
	// Platform9's article.
	CredentialsNodeInline = manifest.ModeNodeInline
	// CredentialsHostPath: the node's own file is mounted, so that a renewed
	// certificate is seen.
	CredentialsHostPath = manifest.ModeHostPath
	// CredentialsServiceAccount: a mounted ServiceAccount token. The default
	// away from a master.
	CredentialsServiceAccount = manifest.ModeServiceAccount
)

// Options is what a person asks for. The zero value of every field but Name
// and Image leaves the choice to [NewPlan].
type Options struct {
	// Name of the scheduler: what pods put in spec.schedulerName, and the stem
	// of every object's name. A DNS label.
	Name string
	// Namespace of the objects. Empty: kube-system.
	Namespace string
	// Image reference of the scheduler, in which [manifest.ReleaseInImage] stands for the
	// release, and when the kubelet pulls it (empty: the cluster's default).
	Image, PullPolicy string
	// Branch is the release that the image was built from, "v1.24.3"; empty or
	// "auto": the release of the API server.
	Branch string
	// Preset names a configuration of ours; Configuration is the person's own
	// KubeSchedulerConfiguration, ConfigurationName the name of its file for
	// messages. At most one of both; neither: preset "default".
	Preset            string
	Configuration     []byte
	ConfigurationName string
	// Lossy leaves out what of the configuration cannot be carried to the release,
	// with a warning for each loss, where it would be an error else.
	Lossy bool
	// Credentials is one of the Credentials constants; empty or "auto": node
	// where the node's scheduler kubeconfig could be read, else serviceaccount.
	Credentials string
	// APIServer is the URL at which pods on the pod network reach the API
	// server, for the credentials serviceaccount. Empty: the name of its
	// service, which needs cluster DNS.
	APIServer string
	// Replicas; 0: one per control-plane node.
	Replicas int
	// Port on which the scheduler serves health and metrics; 0: the first that
	// is free on the control-plane nodes, from 10260.
	Port int
	// NodeSelector says on which nodes the scheduler runs. Empty: those that
	// carry the label of control-plane nodes.
	NodeSelector map[string]string
	// AnyNode lets the scheduler run on every node: for managed clusters, whose
	// control plane has no Node objects.
	AnyNode bool
	// Resources of the scheduler's container. Zero: the manifest's default.
	Resources corev1.ResourceRequirements
	// Plugins are those compiled into the image. Rules has, for some of them by
	// name, what they need themselves; PluginRules is granted as it stands.
	Plugins     []profiles.Plugin
	Rules       map[string]manifest.RulesFunc
	PluginRules []rbacv1.PolicyRule
	// Extenders are those that the scheduler calls, after those of the
	// configuration; ExtenderClients the certificates that it shows to some, by name.
	Extenders       []profiles.Extender
	ExtenderClients map[string]manifest.ClientCertificate
	// Wirings are extenders that pmk-sched deploys itself; they come after Extenders.
	Wirings []manifest.Wiring
	// PolicyConfigMap has the scheduler read predicates, priorities and extenders
	// from a legacy Policy in a ConfigMap: 1.20–1.22 only.
	PolicyConfigMap bool
	// Flags are the flags that would have to be given again to deploy the same
	// with another image, --name=value each; they are recorded.
	Flags []string
	// Version of pmk-sched, recorded in a label.
	Version string
	// Now is the time against which certificates are judged.
	Now time.Time
}

// WantsNodeCredentials reports whether the plan may need the node's scheduler
// kubeconfig, so that the caller reads it before it calls [NewPlan].
func (o Options) WantsNodeCredentials() bool {
	return o.Credentials != CredentialsServiceAccount
}

// Validate checks all that can be checked without a cluster. Its error has
// Invalid and Hint methods.
func (o Options) Validate() error {
	modes := append(manifest.Modes(), Auto, "")
	pulls := []string{string(corev1.PullIfNotPresent), string(corev1.PullAlways), string(corev1.PullNever), ""}
	switch {
	case o.Name == "":
		return problem.Invalidf("name it with --name; pods then say schedulerName: NAME", "the scheduler has no name")
	case o.Image == "":
		return problem.Invalidf("name it with --image; `pmk-sched build` makes one", "scheduler %s has no image", o.Name)
	case !slices.Contains(modes, o.Credentials):
		return problem.Invalidf("use one of "+strings.Join(manifest.Modes(), ", ")+", or auto", "unknown credentials %q", o.Credentials)
	case !slices.Contains(pulls, o.PullPolicy):
		return problem.Invalidf("use IfNotPresent, Always or Never", "unknown pull policy %q", o.PullPolicy)
	case strings.ContainsAny(o.Image, " \t\n"):
		return problem.Invalidf("", "image %q: a reference holds no spaces", o.Image)
	case o.Replicas < 0:
		return problem.Invalidf("", "%d replicas are not possible", o.Replicas)
	case o.Port < 0 || o.Port > 65535:
		return problem.Invalidf("use a port from 1 to 65535", "port %d does not exist", o.Port)
	case len(o.NodeSelector) > 0 && o.AnyNode:
		return problem.Invalidf("", "--node-selector any excludes other selectors")
	case o.Preset != "" && len(o.Configuration) > 0:
		return problem.Invalidf("", "give a configuration or a preset, not both")
	}
	if o.Branch != "" && o.Branch != Auto {
		if _, err := versions.Parse(o.Branch); err != nil {
			return err
		}
	}
	return manifest.ValidateName(o.Name)
}
