package inspect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mounting returns the Deployment of a scheduler that mounts a Secret or a ConfigMap.
func mounting(secret, configMap string) appsv1.Deployment {
	d := deployment("gpu", "s", "v1.24.3", "localhost/s:v1.24.3")
	source := corev1.VolumeSource{}
	if secret != "" {
		source.Secret = &corev1.SecretVolumeSource{SecretName: secret}
	} else {
		source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}
	}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}, {Name: "tmp"}}
	return d
}

func TestDetectReadsTheCertificatesThatSchedulersMount(t *testing.T) {
	authority := newAuthority(t)
	for _, c := range []struct {
		name   string
		days   int
		inline bool
		want   string
	}{
		{"a year left", 365, false, ""},
		{"31 days left", 31, false, ""},
		{"29 days left", 29, false,
			"scheduler s in namespace gpu: the certificate in Secret/gpu/copy expires in 29 days, on "},
		{"expired", -1, false, "scheduler s in namespace gpu: the certificate in Secret/gpu/copy expired on "},
		{"in a ConfigMap", 10, true,
			"scheduler s in namespace gpu: the certificate in ConfigMap/gpu/copy expires in 10 days, on "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, until := pmkMaster(), testNow.AddDate(0, 0, c.days)
			cert, key := authority.sign(t, testNow.AddDate(-2, 0, 0), until)
			s.secrets = map[string]map[string][]byte{"gpu/copy": {"ca.crt": authority.pem, "tls.crt": cert, "tls.key": key}}
			s.deployments = []appsv1.Deployment{mounting("copy", "")}
			if c.inline {
				s.configMaps = map[string]map[string]string{
					"gpu/copy": {"kubeconfig": fmt.Sprintf(
						`{kind: Config, apiVersion: v1, users: [{name: u, user: {client-certificate-data: %s}}]}`,
						base64.StdEncoding.EncodeToString(cert))}}
				s.deployments = []appsv1.Deployment{mounting("", "copy")}
			}
			info := detect(t, s)
			found := info.Scheduler.Deployed[0].Certificate
			if found == nil || !found.Expires.Equal(until) || !strings.Contains(found.Subject, "CN=system:kube-scheduler") {
				t.Fatalf("got %+v, want %s; warnings %q", found, until, info.Warnings)
			}
			about := ""
			for _, warning := range info.Warnings {
				if strings.Contains(warning, "scheduler s in namespace gpu") {
					about = warning
				}
			}
			if !strings.HasPrefix(about, c.want) || c.want == "" && about != "" {
				t.Errorf("got warning %q", about)
			}
			if text, err := json.Marshal(info); err != nil || bytes.Contains(text, key[40:80]) {
				t.Errorf("the key is printed, or %v", err)
			}
		})
	}
}

func TestDetectWarnsOfCertificatesThatItMayNotRead(t *testing.T) {
	s := pmkMaster()
	s.deployments = []appsv1.Deployment{mounting("copy", "")}
	s.forbid = func(path string) bool { return strings.Contains(path, "/secrets/") }
	info := detect(t, s)
	if info.Scheduler.Deployed[0].Certificate != nil {
		t.Error("a certificate without permission")
	}
	wants(t, info, "when the certificate of scheduler s in namespace gpu expires is unknown")
}

func TestTheFirstCertificateOfObjectsToExpire(t *testing.T) {
	authority := newAuthority(t)
	dataOf := func(days int) any {
		cert, _ := authority.sign(t, testNow.AddDate(-1, 0, 0), testNow.AddDate(0, 0, days))
		return base64.StdEncoding.EncodeToString(cert)
	}
	of := func(kind, name string, data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind,
			"metadata": map[string]any{"name": name, "namespace": "gpu"}, "data": data}}
	}
	late, early := of("Secret", "late", map[string]any{"a.crt": dataOf(40)}),
		of("Secret", "early", map[string]any{"a.crt": dataOf(35), "b.crt": dataOf(30)})
	inline := of("ConfigMap", "inline", map[string]any{"kubeconfig": fmt.Sprintf(
		`{kind: Config, apiVersion: v1, users: [{name: u, user: {client-certificate-data: %s}}]}`, dataOf(20)),
		"other": "text"})
	other := of("ServiceAccount", "other", map[string]any{"a.crt": dataOf(1)})
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		want    string
		days    int
	}{
		"none":               {[]*unstructured.Unstructured{other}, "", 0},
		"in the first":       {[]*unstructured.Unstructured{early, late, other}, "Secret/gpu/early", 30},
		"in the second":      {[]*unstructured.Unstructured{late, early}, "Secret/gpu/early", 30},
		"in a ConfigMap":     {[]*unstructured.Unstructured{early, inline}, "ConfigMap/gpu/inline", 20},
		"before a later one": {[]*unstructured.Unstructured{inline, early}, "ConfigMap/gpu/inline", 20},
	} {
		got, err := FirstToExpire(c.objects)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "" && got != nil, c.want != "" && (got == nil || got.Object != c.want ||
			!got.Expires.Equal(testNow.AddDate(0, 0, c.days))):
			t.Errorf("%s: got %+v, want %s in %d days", name, got, c.want, c.days)
		}
	}
	if _, err := FirstToExpire([]*unstructured.Unstructured{of("Secret", "broken", map[string]any{"a": 1})}); err == nil ||
		!strings.Contains(err.Error(), "Secret/gpu/broken") {
		t.Errorf("a Secret that cannot be read: %v", err)
	}
}
