package manifest

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/rbac"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// ExtenderContainerName is the name of the container in an extender's pods.
	ExtenderContainerName = "pmk-extender"
	// ExtenderPort is the port on an extender's pods; its Service has 443.
	ExtenderPort = 8443

	extenderProgram   = "/usr/local/bin/pmk-extender"
	extenderConfigDir = "/etc/pmk-extender/config"
	extenderConfigKey = "config.yaml"
	extenderTLSDir    = "/etc/pmk-extender/tls"
	extenderService   = 443
	extenderReplicas  = 2
	// extenderGrace is an extender's termination grace period in seconds: it answers open requests.
	extenderGrace = 30
	// extenderReadiness excludes the policies: an extender without metrics still answers,
	// neutrally, and a Service without ready pods would not answer at all.
	extenderReadiness = "/readyz?exclude=policies"
)

// Policy is one policy for an extender: an element of policies in pmk-extender's configuration.
type Policy struct {
	Name   string         `json:"name"`
	Weight int64          `json:"weight,omitempty"`
	Args   map[string]any `json:"args,omitempty"`
}

// ExtenderCertificates are PEM. The CA signs only the other two.
type ExtenderCertificates struct {
	CA, Server, Client          []byte
	CAKey, ServerKey, ClientKey []byte `json:"-"`
}

// String does not contain the keys.
func (c ExtenderCertificates) String() string {
	return fmt.Sprintf("certificates of %d bytes", len(c.CA)+len(c.Server)+len(c.Client))
}

// GoString is like String, so that %#v does not print the keys.
func (c ExtenderCertificates) GoString() string { return c.String() }

// Extender is an extender that runs in its own pods behind a Service.
type Extender struct {
	// Name is the name of the Deployment and the Service; see [ValidateName]. Namespace defaults to
	// kube-system.
	Name, Namespace string
	// Release is the API server's release.
	Release    versions.Release
	Image      string
	PullPolicy corev1.PullPolicy
	// Policies are the policies that it serves, Rules the RBAC rules that they need.
	Policies []Policy
	Rules    []rbacv1.PolicyRule
	// Call describes how schedulers call the extender: it serves their verbs only. With a bind verb it
	// has the right to bind pods.
	Call profiles.Extender
	// Anonymous serves every verb but bind without a client certificate, for a scheduler that cannot
	// present one.
	Anonymous bool
	// Certificates must be complete.
	Certificates ExtenderCertificates
	// Replicas defaults to 2.
	Replicas int32
	// NodeSelector is as in [Scheduler]. If it is empty, the extender runs on any node.
	// Architectures are as in [Scheduler].
	NodeSelector  map[string]string
	Architectures []string `json:",omitempty"`
	// Tolerations are in addition to the default ones; see [Tolerations]. PriorityClass is as in
	// [Scheduler].
	Tolerations   []corev1.Toleration `json:",omitempty"`
	PriorityClass string              `json:",omitempty"`
	// Resources of the container. The default is enough for 5,000 nodes.
	Resources corev1.ResourceRequirements
	// Nodes are the nodes whose default scheduler calls the extender, recorded on the Deployment.
	Nodes []string
	// Restarted is a time that replaces the pods when it changes, or empty.
	Restarted string `json:",omitempty"`
	// Version is the version of pmk-sched, for a label.
	Version string
}

// AnnotationNodes is set on an extender's Deployment: the nodes whose default scheduler calls it,
// separated by commas.
const AnnotationNodes = "pmk-sched.io/default-scheduler-of"

// ExtenderObjects returns every object for an extender in the order in which to apply them.
func ExtenderObjects(e Extender) ([]*unstructured.Unstructured, error) {
	e.Namespace = cmp.Or(e.Namespace, metav1.NamespaceSystem)
	e.Replicas = cmp.Or(e.Replicas, extenderReplicas)
	if err := e.validate(); err != nil {
		return nil, err
	}
	configuration, err := e.configuration()
	if err != nil {
		return nil, err
	}
	tls := e.serving()
	typed := []runtime.Object{e.account(), e.role(), e.binding(), e.authority(), tls, e.client(), configuration,
		e.service(), e.networkPolicy()}
	if e.Replicas > 1 {
		typed = append(typed, budget(e.Release, e.meta(e.Name), e.selectorLabels()))
	}
	typed = append(typed, e.deployment(configuration.Name, tls.Name))
	objects, err := kubeapi.Unstructured(typed...)
	if err != nil {
		return nil, fmt.Errorf("build objects of extender %s: %w", e.Name, err)
	}
	return objects, nil
}

func (e Extender) validate() error {
	if err := ValidateName(e.Name); err != nil {
		return err
	}
	c := e.Certificates
	switch {
	case e.Image == "":
		return problem.Invalidf("name it with --image; `pmk-sched build extender` makes one", "extender %s has no image",
			e.Name)
	case len(e.Policies) == 0:
		return problem.Invalidf("name one with --policy: see `pmk-sched plugin list`", "extender %s has no policy", e.Name)
	case len(verbs(e.Call)) == 0:
		return problem.Invalidf("name one under spec.extenders of pmk-sched.yaml, such as filterVerb: filter",
			"extender %s has no verb", e.Name)
	case e.Replicas < 1:
		return problem.Invalidf("use 1 or more", "extender %s cannot have %d replicas", e.Name, e.Replicas)
	case slices.ContainsFunc([][]byte{c.CA, c.CAKey, c.Server, c.ServerKey, c.Client, c.ClientKey},
		func(b []byte) bool { return len(b) == 0 }):
		return fmt.Errorf("build objects of extender %s: a certificate or key is missing", e.Name)
	}
	return validatePolicies(e.Name, e.Policies)
}

func validatePolicies(name string, policies []Policy) error {
	var seen []string
	for _, p := range policies {
		switch {
		case p.Name == "":
			return problem.Invalidf("", "extender %s: a policy has no name", name)
		case slices.Contains(seen, p.Name):
			return problem.Invalidf("give it once", "extender %s: duplicate policy %s", name, p.Name)
		case p.Weight < 0 || p.Weight > 100:
			return problem.Invalidf("use 1 to 100", "extender %s: policy %s: invalid weight %d", name, p.Name, p.Weight)
		}
		seen = append(seen, p.Name)
	}
	return nil
}

func (e Extender) labels() map[string]string {
	labels := e.podLabels()
	if version := labelValue(e.Version); version != "" {
		labels[ownership.LabelVersion] = version
	}
	return labels
}

func (e Extender) selectorLabels() map[string]string {
	return map[string]string{ownership.LabelName: ownership.Extender, ownership.LabelInstance: e.Name}
}

func (e Extender) podLabels() map[string]string {
	labels := e.selectorLabels()
	labels["component"] = "scheduler-extender"
	labels["tier"] = "control-plane"
	labels[ownership.LabelManagedBy] = ownership.Manager
	return labels
}

func (e Extender) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: e.Namespace, Labels: e.labels()}
}

func (e Extender) account() *corev1.ServiceAccount {
	return rbac.ServiceAccount(rbac.Options{Name: e.Name, Namespace: e.Namespace, Labels: e.labels()})
}

func (e Extender) rights() rbac.Options {
	return rbac.Options{Name: e.Name, Namespace: e.Namespace, Labels: e.labels(), PluginRules: e.Rules}
}

func (e Extender) role() *rbacv1.ClusterRole {
	return rbac.ExtenderRole(e.rights(), e.Call.BindVerb != "")
}

func (e Extender) binding() *rbacv1.ClusterRoleBinding { return rbac.ExtenderRoleBinding(e.rights()) }

// ExtenderAuthority is the name of the Secret with an extender's CA. No pod mounts it; the next
// deployment signs with it.
func ExtenderAuthority(name string) string { return name + "-ca" }

func (e Extender) authority() *corev1.Secret {
	return e.secret(ExtenderAuthority(e.Name),
		map[string][]byte{"tls.crt": e.Certificates.CA, "tls.key": e.Certificates.CAKey})
}

// ExtenderClient is the name of the Secret with the client certificate that schedulers use for an
// extender.
func ExtenderClient(name string) string { return name + "-client" }

func (e Extender) client() *corev1.Secret {
	return e.secret(ExtenderClient(e.Name),
		map[string][]byte{"tls.crt": e.Certificates.Client, "tls.key": e.Certificates.ClientKey})
}

// ExtenderServing is the name prefix of the Secret with an extender's serving certificate.
func ExtenderServing(name string) string { return name + "-tls" }

func (e Extender) serving() *corev1.Secret {
	data := map[string][]byte{"ca.crt": e.Certificates.CA, "tls.crt": e.Certificates.Server,
		"tls.key": e.Certificates.ServerKey}
	secret := e.secret(hashed(ExtenderServing(e.Name), data), data)
	immutable := true
	secret.Immutable = &immutable
	return secret
}

func (e Extender) secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: e.meta(name),
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

func (e Extender) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: e.meta(e.Name),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: e.selectorLabels(),
			Ports: []corev1.ServicePort{{
				Name: PortName, Port: extenderService, TargetPort: intstr.FromString(PortName), Protocol: corev1.ProtocolTCP,
			}},
		},
	}
}

// networkPolicy admits requests to the extender's port and nothing else. It admits every source,
// because schedulers are on the host network, whose addresses no selector matches; the client
// certificate identifies them.
func (e Extender) networkPolicy() *networkingv1.NetworkPolicy {
	port, protocol := intstr.FromInt32(ExtenderPort), corev1.ProtocolTCP
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: e.meta(e.Name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: e.selectorLabels()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: &port,
				Protocol: &protocol}}}},
		},
	}
}
