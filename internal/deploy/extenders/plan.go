package extenders

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/versions"
)

// newPlan returns the plan for an extender with a Service, for an API server at the release. It
// keeps the certificates among its live objects that are still valid. anonymous is the reason why a
// scheduler that calls it cannot present a client certificate, or empty. newPlan does no I/O.
func newPlan(release versions.Release, live []*unstructured.Unstructured, o Options,
	anonymous string) (*deploy.Plan, error) {
	o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceSystem)
	notes, err := o.check(release)
	if err != nil {
		return nil, err
	}
	rules, err := o.rules()
	if err != nil {
		return nil, err
	}
	policies, err := deploy.PoliciesOf(o.Extender)
	if err != nil {
		return nil, err
	}
	name := o.Name
	plan := &deploy.Plan{Name: name, Namespace: o.Namespace, Release: release, TakenPorts: map[int]string{},
		MissingImage: o.MissingImage}
	for _, n := range notes {
		plan.Warnings = append(plan.Warnings, n.Message)
	}
	set, made, err := certificates.Ensure(liveCertificates(live, name), certificates.Request{
		Name: name, DNS: extenderNames(name, o.Namespace), Now: o.Now,
	})
	if err != nil {
		return nil, err
	}
	if len(made) > 0 {
		plan.Notes = append(plan.Notes, fmt.Sprintf("extender %s: new %s", name, strings.Join(made, ", ")))
	}
	for _, rule := range rules {
		plan.Notes = append(plan.Notes, fmt.Sprintf("extender %s may %s", name, manifest.DescribeRule(rule)))
	}
	plan.Extender = &manifest.Extender{
		Name: name, Namespace: o.Namespace, Release: release, Image: o.Image, PullPolicy: corev1.PullPolicy(o.PullPolicy),
		Policies: policies, Rules: rules, Call: deploy.CallOf(o.Extender), Anonymous: anonymous != "",
		Replicas:     int32(o.Replicas),
		NodeSelector: maps.Clone(o.NodeSelector), Architectures: o.Architectures,
		Tolerations: o.Tolerations, PriorityClass: o.PriorityClass,
		Version: o.Version, Nodes: mergeNodes(NodesCalling(live), o.Nodes),
		Certificates: manifest.ExtenderCertificates{
			CA: set.CA.Cert, CAKey: set.CA.Key, Server: set.Server.Cert, ServerKey: set.Server.Key, Client: set.Client.Cert,
			ClientKey: set.Client.Key,
		},
	}
	if anonymous != "" {
		plan.Warnings = append(plan.Warnings,
			fmt.Sprintf("extender %s answers without a client certificate: %s", name, anonymous))
	}
	plan.Scheduler.Image = o.Image
	if plan.Objects, err = manifest.ExtenderObjects(*plan.Extender); err != nil {
		return nil, err
	}
	return plan, nil
}

// extenderNames returns the names in the serving certificate.
func extenderNames(name, namespace string) []string {
	host := manifest.ExtenderHost(name, namespace)
	return []string{host, host + ".cluster.local", name + "." + namespace, name, "localhost"}
}

// liveCertificates returns the certificates in the cluster.
func liveCertificates(live []*unstructured.Unstructured, name string) certificates.Set {
	var set certificates.Set
	for _, o := range live {
		if o.GetKind() != "Secret" {
			continue
		}
		var secret corev1.Secret
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &secret) != nil {
			continue
		}
		pair := certificates.Pair{Cert: secret.Data["tls.crt"], Key: secret.Data["tls.key"]}
		switch {
		case secret.Name == manifest.ExtenderAuthority(name):
			set.CA = pair
		case secret.Name == manifest.ExtenderClient(name):
			set.Client = pair
		case strings.HasPrefix(secret.Name, manifest.ExtenderServing(name)+"-") && mounted(live, secret.Name):
			set.Server = pair
		}
	}
	return set
}

// mounted reports whether a Deployment among the objects mounts the Secret: former revisions'
// Secrets are kept.
func mounted(live []*unstructured.Unstructured, secret string) bool {
	for _, o := range live {
		volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		for _, v := range volumes {
			volume, _ := v.(map[string]any)
			if name, _, _ := unstructured.NestedString(volume, "secret", "secretName"); name == secret {
				return true
			}
		}
	}
	return false
}

// NodesCalling returns the nodes whose default scheduler calls the extender, as its live Deployment
// records them.
func NodesCalling(live []*unstructured.Unstructured) []string {
	for _, o := range live {
		if text := o.GetAnnotations()[manifest.AnnotationNodes]; o.GetKind() == "Deployment" && text != "" {
			return strings.Split(text, ",")
		}
	}
	return nil
}

func mergeNodes(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// withService returns an extender's entry as a scheduler calls it at its Service; live are its
// objects in the cluster. The address is the Service's cluster IP as soon as there is one:
// scheduling then needs no DNS, and the default scheduler, a static pod, does not use cluster DNS.
func withService(entry v1alpha1.Extender, namespace string, ca []byte,
	live []*unstructured.Unstructured) v1alpha1.Extender {
	host := manifest.ExtenderHost(entry.Name, namespace)
	at := &v1alpha1.DeployedExtender{URLPrefix: "https://" + host, ServerName: host, CAData: ca}
	for _, o := range live {
		if ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); o.GetKind() == "Service" && ip != "" &&
			ip != corev1.ClusterIPNone {
			at.URLPrefix = "https://" + bracketed(ip)
		}
	}
	entry.Deployed = at
	return entry
}

// withClientCertificate makes a scheduler in the extender's namespace present its client
// certificate.
func withClientCertificate(entry v1alpha1.Extender) v1alpha1.Extender {
	at := *entry.Deployed
	at.ClientSecret = manifest.ExtenderClient(entry.Name)
	entry.Deployed = &at
	return entry
}

// bracketed returns an IP address as the host in a URL.
func bracketed(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}
