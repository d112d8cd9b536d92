// Package manifest builds every object for a second scheduler, in the order in which they are
// applied: typed, one function per object, then as unstructured data. It does no I/O, and the same
// input gives the same bytes.
//
// ConfigMaps and Secrets with configuration or credentials are immutable and have a hash of their
// content in their name. A new configuration is therefore a new object and a rollout, and a
// rollback finds the old object.
//
// Only fields that API servers know in all supported releases are set.
package manifest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ContainerName is the name of the container in the scheduler's pods.
const ContainerName = "kube-scheduler"

// Program is the scheduler's path in its image, which the container runs.
const Program = "/usr/local/bin/kube-scheduler"

// configPath returns the scheduler configuration's path in the pod.
func configPath(name string) string { return configDir(name) + "/" + name + ".yaml" }

// KubeconfigPath returns the kubeconfig's path in the pod.
func KubeconfigPath(name string) string { return kubeconfigDir + "/" + kubeconfigKey(name) }

func configDir(name string) string     { return "/etc/kubernetes/" + name }
func kubeconfigKey(name string) string { return "kubeconfig-for-" + name + ".yaml" }

const (
	kubeconfigDir  = "/srv/kubernetes/kubeconfigs"
	credentialsDir = "/srv/kubernetes/credentials"
)

// Scheduler describes a second scheduler completely. Its JSON omits the fields that a request has.
type Scheduler struct {
	// Name is the scheduler name and the name prefix of all objects; see [ValidateName]. Namespace
	// holds the objects and defaults to kube-system.
	Name, Namespace string `json:"-"`
	// Release is the Kubernetes release of the kube-scheduler in the image.
	Release versions.Release
	// Image is the image reference. An empty PullPolicy is the cluster's default.
	Image      string
	PullPolicy corev1.PullPolicy `json:"-"`
	// SignedBy identifies the key that must have signed the image. If it is empty, none is required.
	SignedBy string `json:",omitempty"`
	// Configuration is the rendered scheduler configuration. Its kubeconfig must be
	// KubeconfigPath(Name).
	Configuration *profiles.Rendered
	// Credentials are the scheduler's credentials.
	Credentials Credentials

	// NodeSelector holds the labels of the nodes to run on. An empty value matches any value:
	// control-plane labels are empty on some distributions and "true" on others.
	NodeSelector map[string]string
	// Architectures of the nodes to run on. If it is empty, every architecture is allowed.
	Architectures []string `json:",omitempty"`
	// Tolerations replace the default ones; see [Tolerations].
	Tolerations []corev1.Toleration
	// PriorityClass is the pods' priority class, by default system-cluster-critical, or
	// [v1alpha1.NoPriorityClass].
	PriorityClass string `json:"-"`
	// Replicas defaults to 1. More than one needs leader election.
	Replicas int32
	// Shortage is the number of replicas that have no node now; see [TolerateShortage].
	Shortage int
	// Port is the secure port. The default is the default scheduler's plus one.
	Port int
	// Args are additional flags, --name=value each. They override flags set by pmk-sched, except
	// reserved flags, which are refused.
	Args []string `json:"-"`
	// Resources of the container. The default is a request of 0.1 CPU.
	Resources corev1.ResourceRequirements `json:"-"`
	// AssignedUser leaves the pod's user and groups to the API server, as OpenShift assigns them in
	// most namespaces.
	AssignedUser bool `json:",omitempty"`
	// Restarted is a time that replaces the pods when it changes, or empty.
	Restarted string `json:",omitempty"`
	// Version is the version of pmk-sched, for a label.
	Version string
	// PluginRules are the RBAC rules that compiled-in plugins need.
	PluginRules []rbacv1.PolicyRule
	// NoAuthenticationReader leaves out the RoleBinding in kube-system; see [rbac.Options].
	NoAuthenticationReader bool `json:",omitempty"`
	// ExtenderClients are the client certificates for extenders, by the extender's name; they are
	// mounted at [ExtenderClientPaths].
	ExtenderClients map[string]ClientCertificate `json:"-"`
	// Wirings are extenders that pmk-sched deploys. The configuration calls them.
	Wirings []Wiring `json:"-"`
	// Route registers the scheduler for new pods, or is nil. Its labels are the scheduler's.
	Route *route.Registration `json:",omitempty"`
}

// Objects returns every object for the scheduler in the order in which to apply them: the account
// and its rights, the mounted objects, the Deployment, the route.
func Objects(s Scheduler) ([]*unstructured.Unstructured, error) {
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return nil, err
	}
	rules, err := versions.Select(s.Release)
	if err != nil {
		return nil, fmt.Errorf("build objects of scheduler %s: %w", s.Name, err)
	}
	args, err := s.args()
	if err != nil {
		return nil, err
	}
	typed := rbac.Objects(s.rbacOptions())
	mounts := s.mounts()
	typed = append(typed, mounts.objects...)
	if s.Replicas > 1 {
		typed = append(typed, budget(s.Release, s.meta(s.Name), s.SelectorLabels()))
	}
	deployment := s.deployment(rules, args, mounts)
	added, err := s.wire(typed, deployment)
	if err != nil {
		return nil, err
	}
	typed = append(append(typed, added...), deployment) // after the objects that its pods mount
	if s.Route != nil {
		registration := *s.Route
		registration.Labels = s.labels()
		routing, err := route.Objects(registration)
		if err != nil {
			return nil, err
		}
		typed = append(typed, routing...)
	}

	objects, err := kubeapi.Unstructured(typed...)
	if err != nil {
		return nil, fmt.Errorf("build objects of scheduler %s: %w", s.Name, err)
	}
	return TolerateShortage(objects, s.Shortage)
}

func (s Scheduler) withDefaults() Scheduler {
	s.Namespace = cmp.Or(s.Namespace, metav1.NamespaceSystem)
	s.Replicas = cmp.Or(s.Replicas, 1)
	s.Port = cmp.Or(s.Port, versions.SecurePort+1)
	s.Credentials = s.Credentials.withDefaults()
	return s
}

func (s Scheduler) validate() error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	switch {
	case s.Image == "":
		return problem.Invalidf("name the image with --image", "scheduler %s has no image", s.Name)
	case s.Configuration == nil || len(s.Configuration.YAML) == 0:
		return fmt.Errorf("build objects of scheduler %s: no rendered configuration", s.Name)
	case !bytes.Contains(s.Configuration.YAML, []byte(KubeconfigPath(s.Name))):
		return fmt.Errorf("build objects of scheduler %s: its configuration does not use the kubeconfig %s", s.Name,
			KubeconfigPath(s.Name))
	case s.Replicas > 1 && !s.Configuration.LeaderElect:
		return problem.Invalidf("turn on leader election, or run one replica",
			"%d replicas of scheduler %s without leader election would schedule the same pods", s.Replicas, s.Name)
	case s.Port < 1024 || s.Port > 65535:
		return problem.Invalidf("the scheduler is an unprivileged process, which cannot listen on ports below 1024",
			"scheduler %s: invalid port %d: must be between 1024 and 65535", s.Name, s.Port)
	case s.Replicas < 0:
		return problem.Invalidf("use 1 or more", "scheduler %s cannot have %d replicas", s.Name, s.Replicas)
	}
	if err := s.validateClients(); err != nil {
		return err
	}
	return s.Credentials.validate(s.Name)
}

func (s Scheduler) rbacOptions() rbac.Options {
	return rbac.Options{
		Name:           s.Name,
		Namespace:      s.Namespace,
		Subject:        s.subject(),
		Labels:         s.labels(),
		LeaseNamespace: cmp.Or(s.Configuration.LeaseNamespace, s.Namespace),
		PluginRules:    s.PluginRules,

		NoAuthenticationReader: s.NoAuthenticationReader,

		PolicyConfigMap: s.policyName(),
	}
}

// subject is the credentials' identity, and the only one that is granted rights.
func (s Scheduler) subject() rbac.Subject {
	if s.Credentials.Mode == ModeServiceAccount {
		return rbac.ServiceAccountSubject(s.Namespace, s.Name)
	}
	return rbac.User(s.Credentials.User)
}

// SelectorLabels returns the labels that select only this scheduler's pods. The labels component
// and tier alone would also select the control plane's static pods.
func (s Scheduler) SelectorLabels() map[string]string {
	return map[string]string{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: s.Name}
}

// labels are the labels on every object.
func (s Scheduler) labels() map[string]string {
	labels := s.podLabels()
	if version := labelValue(s.Version); version != "" {
		labels[ownership.LabelVersion] = version
	}
	return labels
}

// podLabels omit the version of pmk-sched: a new version does not restart the scheduler.
func (s Scheduler) podLabels() map[string]string {
	labels := s.SelectorLabels()
	labels["component"] = "scheduler"
	labels["tier"] = "control-plane"
	labels[ownership.LabelManagedBy] = ownership.Manager
	labels[ownership.LabelRelease] = s.Release.String()
	return labels
}

// labelValue converts a version to a label value: no "+", at most 63 characters.
func labelValue(version string) string {
	value := []byte(version)
	for i, c := range value {
		if c != '.' && c != '-' && c != '_' && !alphanumeric(c) {
			value[i] = '-'
		}
	}
	value = value[:min(len(value), 63)]
	for len(value) > 0 && !alphanumeric(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	for len(value) > 0 && !alphanumeric(value[0]) {
		value = value[1:]
	}
	return string(value)
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// hashed appends a hash of the contents to a name. The order of keys does not matter.
func hashed(name string, contents map[string][]byte) string {
	keys := make([]string, 0, len(contents))
	for key := range contents {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	sum := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(sum, "%d %s %d ", len(key), key, len(contents[key]))
		sum.Write(contents[key])
	}
	return name + "-" + hex.EncodeToString(sum.Sum(nil))[:10]
}
