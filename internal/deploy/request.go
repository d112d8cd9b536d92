package deploy

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Credentials with which the scheduler authenticates to the API server.
const (
	// CredentialsNode copies certificate and key from the node's scheduler kubeconfig to a Secret, and
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

// IsChosen reports whether a field in a request has a value that is not left to the plan.
func IsChosen(value string) bool { return value != "" && value != v1alpha1.Auto }

// Validate checks the values that a request may have and a scheduler may not. It asks no cluster.
func Validate(r *v1alpha1.CustomScheduler, f Facts) error {
	switch mode := f.credentials(r); {
	case r.Name == "":
		return problem.Invalidf("pods name the scheduler in spec.schedulerName", "--name is required")
	case mode != "" && !slices.Contains(manifest.Modes(), mode):
		return problem.Invalidf("use one of "+strings.Join(manifest.Modes(), ", ")+", or auto",
			"invalid credentials %q", mode)
	}
	if err := ValidateImage(f.Image, r.Spec.Image.PullPolicy); err != nil {
		return err
	}
	if IsChosen(f.Branch) {
		if _, err := versions.Parse(f.Branch); err != nil {
			return err
		}
	}
	return manifest.ValidateName(r.Name)
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

// Configuration returns a request's configuration with contents: a preset, or the text and its name
// in messages.
func Configuration(r *v1alpha1.CustomScheduler) (preset string, text []byte, name string) {
	c := r.Spec.Configuration
	if c.File == "" && c.Inline == "" {
		return c.Preset, nil, ""
	}
	return "", []byte(c.Inline), cmp.Or(c.File, "spec.configuration.inline")
}

// Rendering returns the input for a scheduler's configuration, without its release, and the client
// certificates for its extenders by name. A plan and a simulation render the same. The request
// contains the contents of the files that it names.
func Rendering(r *v1alpha1.CustomScheduler) (profiles.Request, map[string]manifest.ClientCertificate, error) {
	called, clients, err := CalledExtenders(r)
	made := profiles.Request{
		SchedulerName: r.Name, LeaseNamespace: NamespaceOf(r), Kubeconfig: manifest.KubeconfigPath(r.Name), LeaderElect: true,
		Lossy: r.Spec.Configuration.Lossy, Extenders: called, Policy: r.Spec.Configuration.PolicyConfigMap,
	}
	made.Preset, made.Source, made.SourceName = Configuration(r)
	return made, clients, err
}

// NamespaceOf returns the namespace for a request's objects.
func NamespaceOf(r *v1alpha1.CustomScheduler) string {
	return cmp.Or(r.Namespace, metav1.NamespaceSystem)
}
