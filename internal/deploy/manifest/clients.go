package manifest

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// extenderClientsDir is the directory in the pod with the scheduler's client certificates for
// extenders.
const extenderClientsDir = "/srv/kubernetes/extenders"

// ClientCertificate is a client certificate and its key, PEM.
type ClientCertificate struct {
	Cert []byte
	Key  []byte `json:"-"`
}

// String does not contain the key.
func (c ClientCertificate) String() string { return "a client certificate" }

// GoString is like String, so that %#v does not print the key.
func (c ClientCertificate) GoString() string { return c.String() }

// ExtenderClientPaths returns the paths to the client certificate and key for an extender in the
// pod.
func ExtenderClientPaths(extender string) (cert, key string) {
	return extenderClientsDir + "/" + extender + ".crt", extenderClientsDir + "/" + extender + ".key"
}

// extenderClientsSecret holds the certificates for all extenders.
func (s Scheduler) extenderClientsSecret() *corev1.Secret {
	data := map[string][]byte{}
	for name, client := range s.ExtenderClients {
		data[name+".crt"], data[name+".key"] = client.Cert, client.Key
	}
	immutable := true
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: s.meta(hashed(s.Name+"-extender-clients", data)),
		Immutable:  &immutable,
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// validateClients refuses files that the configuration names for an extender and that are not in
// the pod: the scheduler would exit.
func (s Scheduler) validateClients() error {
	held := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.ExtenderClients)) {
		client := s.ExtenderClients[name]
		if len(bytes.TrimSpace(client.Cert)) == 0 || len(bytes.TrimSpace(client.Key)) == 0 {
			return problem.Invalidf("give both, PEM", "client certificate for extender %s: certificate or key missing", name)
		}
		cert, key := ExtenderClientPaths(name)
		held[cert], held[key] = true, true
	}
	for _, file := range s.Configuration.Files {
		if !held[file] && !strings.HasPrefix(file, ClientDir("")) {
			return problem.Invalidf(
				"give caData (the certificates in base64) instead of caFile; name certificate and key under spec.extenders of "+
					"pmk-sched.yaml, which mounts them",
				"tlsConfig of an extender names %s, which is not in the scheduler's pod: the scheduler would not start", file)
		}
	}
	return nil
}
