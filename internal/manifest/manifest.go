// Package manifest builds every object of one second scheduler, in the order in
// which they are applied: typed, one function per object, then as plain data.
// It does no I/O, and the same input gives the same bytes.
//
// What changes with its content (both ConfigMaps and the Secret) is immutable and
// carries a hash of it in its name. A new configuration is therefore a new
// object and a rollout, and the old one is still there to go back to.
//
// Only fields are set that API servers of every supported release know.
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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/ownership"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ContainerName is the name of the only container of the scheduler's pods.
const ContainerName = "kube-scheduler"

// ConfigPath is where the scheduler configuration is mounted in the pod.
func ConfigPath(name string) string { return configDir(name) + "/" + name + ".yaml" }

// KubeconfigPath is where the kubeconfig is mounted in the pod, with any
// credentials.
func KubeconfigPath(name string) string { return kubeconfigDir + "/" + kubeconfigKey(name) }

func configDir(name string) string     { return "/etc/kubernetes/" + name }
func kubeconfigKey(name string) string { return "kubeconfig-for-" + name + ".yaml" }

const (
	kubeconfigDir  = "/srv/kubernetes/kubeconfigs"
	credentialsDir = "/srv/kubernetes/credentials"
)

// ReleaseInImage stands for the release, v1.24.3, in the reference of an image that a plan is made for.
const ReleaseInImage = "{release}"

// Scheduler is one second scheduler, all decided.
type Scheduler struct {
	// Name is the scheduler name, and the stem of every object's name; see
	// [ValidateName]. Namespace holds the objects; empty is kube-system.
	Name, Namespace string
	// Release is the Kubernetes release of the kube-scheduler in the image.
	Release versions.Release
	// Image is the reference to run; PullPolicy is empty for the cluster's default.
	Image      string
	PullPolicy corev1.PullPolicy
	// Configuration is the rendered scheduler configuration. It has to name
	// KubeconfigPath(Name) as the client's kubeconfig.
	Configuration *profiles.Rendered
	// Credentials are how the scheduler proves who it is.
	Credentials Credentials

	// NodeSelector are the labels of the nodes to run on. An empty value is a key
	// that has to exist, with any value: control-plane labels have "" on one
	// distribution and "true" on the next.
	NodeSelector map[string]string
	// Tolerations replace the default ones, which tolerate both control-plane
	// taints with any value and effect.
	Tolerations []corev1.Toleration
	// Replicas is how many pods run; 0 means 1. More than one need leader
	// election in the configuration.
	Replicas int32
	// Port is the secure port; 0 means one above the default scheduler's.
	Port int
	// Args are further flags, --name=value each. They win over those made here,
	// but for the ones that hold the deployment together, which are refused.
	Args []string
	// Resources of the container; zero means a request of 0.1 CPU.
	Resources corev1.ResourceRequirements
	// Flags are what the person said, --name=value each, that would have to be
	// said again to deploy the same with another image; they are noted down on
	// the Deployment and hold no secrets.
	Flags []string
	// Version is that of pmk-sched, for a label.
	Version string
	// PluginRules are what compiled-in plugins need to read.
	PluginRules []rbacv1.PolicyRule
	// ExtenderClients are the certificates that the scheduler shows to extenders, by
	// the extender's name; they lie at [ExtenderClientPaths].
	ExtenderClients map[string]ClientCertificate
}

// Objects returns every object of the scheduler in the order in which to apply
// them: the account and its rights, then what the pods mount, then the
// Deployment. What is wrong in the input is an [*Error].
func Objects(s Scheduler) ([]*unstructured.Unstructured, error) {
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return nil, err
	}
	rules, _, err := versions.Select(s.Release)
	if err != nil {
		return nil, fmt.Errorf("build objects of scheduler %s: %w", s.Name, err)
	}
	args, err := s.args(rules)
	if err != nil {
		return nil, err
	}
	typed := rbac.Objects(s.rbacOptions())
	mounts := s.mounts()
	typed = append(typed, mounts.objects...)
	typed = append(typed, s.deployment(rules, args, mounts))

	objects := make([]*unstructured.Unstructured, len(typed))
	for i, object := range typed {
		if objects[i], err = plain(object); err != nil {
			return nil, fmt.Errorf("build objects of scheduler %s: %w", s.Name, err)
		}
	}
	return objects, nil
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
		return invalid("name the image with --image", "scheduler %s has no image", s.Name)
	case s.Configuration == nil || len(s.Configuration.YAML) == 0:
		return fmt.Errorf("build objects of scheduler %s: there is no rendered configuration", s.Name)
	case !bytes.Contains(s.Configuration.YAML, []byte(KubeconfigPath(s.Name))):
		return fmt.Errorf("build objects of scheduler %s: its configuration does not use the kubeconfig %s", s.Name, KubeconfigPath(s.Name))
	case s.Replicas > 1 && !s.Configuration.LeaderElect:
		return invalid("turn leader election on, or run one replica", "%d replicas of scheduler %s without leader election would schedule the same pods", s.Replicas, s.Name)
	case s.Port < 1024 || s.Port > 65535:
		return invalid("use a free port from 1024 to 65535", "port %d of scheduler %s is not one that a process without rights can listen on", s.Port, s.Name)
	case s.Replicas < 0:
		return invalid("use 1 or more", "scheduler %s cannot have %d replicas", s.Name, s.Replicas)
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

		PolicyConfigMap: s.policyName(),
	}
}

// subject is the identity that the credentials carry, and the only one that is
// given rights.
func (s Scheduler) subject() rbac.Subject {
	if s.Credentials.Mode == ModeServiceAccount {
		return rbac.ServiceAccountSubject(s.Namespace, s.Name)
	}
	return rbac.User(s.Credentials.User)
}

// selectorLabels select the pods of this scheduler and of no other. The labels
// component and tier alone would also select static pods of the control plane.
func (s Scheduler) selectorLabels() map[string]string {
	return map[string]string{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: s.Name}
}

// labels are those of every object.
func (s Scheduler) labels() map[string]string {
	labels := s.podLabels()
	if version := labelValue(s.Version); version != "" {
		labels[ownership.LabelVersion] = version
	}
	return labels
}

// podLabels leave out the version of pmk-sched: a new one is no reason to restart
// the scheduler.
func (s Scheduler) podLabels() map[string]string {
	labels := s.selectorLabels()
	labels["component"] = "scheduler"
	labels["tier"] = "control-plane"
	labels[ownership.LabelManagedBy] = ownership.Manager
	labels[ownership.LabelRelease] = s.Release.String()
	return labels
}

// labelValue turns a version into a label's value: no "+", at most 63 letters.
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

// hashed appends a hash of the contents to a name. The order of keys does not
// count.
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

// plain turns a typed object into plain data, without the fields that a client
// never sends: status, and what is null.
func plain(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", object, err)
	}
	delete(content, "status")
	dropNulls(content)
	return &unstructured.Unstructured{Object: content}, nil
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if v == nil {
				delete(value, key)
				continue
			}
			dropNulls(v)
		}
	case []any:
		for _, v := range value {
			dropNulls(v)
		}
	}
}
