package deploy

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

// nodeCertificate returns the credentials of a node with a certificate that its authority signed.
func nodeCertificate(t *testing.T) *inspect.NodeCredentials {
	t.Helper()
	authority, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: now, NotAfter: now.AddDate(10, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "system:kube-scheduler"}, NotBefore: now,
		NotAfter: now.AddDate(1, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	creds := nodeCredentials()
	creds.CA, creds.Cert, creds.Key = authority.Cert, pair.Cert, pair.Key
	return creds
}

func TestCredentialsOfEachMode(t *testing.T) {
	creds := nodeCertificate(t)
	expires := now.AddDate(1, 0, 0)
	const file = "/srv/kubernetes/kubeconfigs/kubeconfig-for-my-scheduler.yaml"
	const deploy = "`pmk-sched credentials refresh` or `pmk-sched deploy` on a control-plane node takes that node's " +
		"certificate"
	const restart = "with the node's certificates; a scheduler reads a renewed file when its container restarts"
	fromNode := func(path string) (*inspect.NodeCredentials, error) {
		if path != creds.Path {
			return nil, errors.New("read kubeconfig " + path + ": not this one")
		}
		return creds, nil
	}
	unreadable := func(string) (*inspect.NodeCredentials, error) { return nil, errors.New("permission denied") }
	for name, tt := range map[string]struct {
		mode string
		read ReadNodeFile
		want CredentialsReport
	}{
		"node": {CredentialsNode, nil, CredentialsReport{
			Server: "https://localhost:443", Subject: "CN=system:kube-scheduler", Issuer: "CN=kubernetes", Expires: &expires,
			Source: "Secret/kube-system/my-scheduler-credentials-HASH", Renewal: deploy,
		}},
		"node-inline": {CredentialsNodeInline, nil, CredentialsReport{
			Server: "https://localhost:443", Subject: "CN=system:kube-scheduler", Issuer: "CN=kubernetes", Expires: &expires,
			Source: "ConfigMap/kube-system/kubeconfig-for-my-scheduler-HASH", Renewal: deploy,
		}},
		"hostpath on a node": {CredentialsHostPath, fromNode, CredentialsReport{
			Server: "https://localhost:443", Subject: "CN=system:kube-scheduler", Issuer: "CN=kubernetes", Expires: &expires,
			Source: creds.Path + " of this node; other nodes have their own", Renewal: restart,
		}},
		"hostpath elsewhere": {CredentialsHostPath, nil, CredentialsReport{
			Source: creds.Path + " of each node", Renewal: restart,
			Unknown: "the file is on the control-plane nodes, and this is none of them",
		}},
		"hostpath, unreadable": {CredentialsHostPath, unreadable,
			CredentialsReport{Source: creds.Path + " of each node", Renewal: restart, Unknown: "permission denied"}},
		"serviceaccount": {CredentialsServiceAccount, nil, CredentialsReport{
			Server: "https://kubernetes.default.svc", Subject: "system:serviceaccount:kube-system:my-scheduler",
			Source:  "ServiceAccount/kube-system/my-scheduler",
			Renewal: "the kubelet renews the token in /var/run/secrets/kubernetes.io/serviceaccount/token",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Node: creds,
				Image: "localhost/s:v1", Now: now}}
			o.Spec.Credentials = tt.mode
			plan, err := o.Plan()
			if err != nil {
				t.Fatal(err)
			}
			got, err := DescribeCredentials(plan.Objects, "kube-system", "my-scheduler", tt.read)
			if err != nil {
				t.Fatal(err)
			}
			got.Source = contentHash.ReplaceAllString(got.Source, "-HASH")
			tt.want.Mode, tt.want.File = tt.mode, file
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), "KEY") {
				t.Errorf("JSON %s, %v", text, err)
			}
		})
	}
}

func TestCredentialsThatCannotBeDescribed(t *testing.T) {
	plan, err := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCertificate(t),
		Image: "localhost/s:v1", Now: now}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	without := func(kind string) []*unstructured.Unstructured {
		return slices.DeleteFunc(slices.Clone(plan.Objects),
			func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	}
	garbled := slices.Clone(plan.Objects)
	for i, o := range garbled {
		if o.GetKind() == "Secret" {
			garbled[i] = o.DeepCopy()
			garbled[i].Object["data"] = map[string]any{"tls.crt": "Z2FyYmxlZA=="}
		}
	}
	for name, tt := range map[string]struct {
		owned     []*unstructured.Unstructured
		namespace string
		want      string
	}{
		"not deployed":           {nil, "kube-system", "scheduler my-scheduler is not deployed in namespace kube-system"},
		"in another namespace":   {plan.Objects, "gpu", "scheduler my-scheduler is not deployed in namespace gpu"},
		"the Secret is missing":  {without("Secret"), "kube-system", ", which the scheduler mounts, does not exist"},
		"no kubeconfig":          {without("ConfigMap"), "kube-system", ", which the scheduler mounts, does not exist"},
		"the Secret was changed": {garbled, "kube-system", "not PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DescribeCredentials(tt.owned, tt.namespace, "my-scheduler", nil); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
