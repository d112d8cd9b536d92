//go:build linux

package lab

import (
	"fmt"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// access is the content of a kubeconfig with embedded keys.
type access struct {
	server, cluster, user string
	// contexts are the contexts with their namespaces; the first is the current one.
	contexts []contextName
	ca       []byte
	pair     certificates.Pair
}

type contextName struct{ name, namespace string }

func kubeconfig(a access) ([]byte, error) {
	c := clientcmdv1.Config{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters: []clientcmdv1.NamedCluster{{
			Name:    a.cluster,
			Cluster: clientcmdv1.Cluster{Server: a.server, CertificateAuthorityData: a.ca},
		}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{
			Name:     a.user,
			AuthInfo: clientcmdv1.AuthInfo{ClientCertificateData: a.pair.Cert, ClientKeyData: a.pair.Key},
		}},
		CurrentContext: a.contexts[0].name,
	}
	for _, n := range a.contexts {
		c.Contexts = append(c.Contexts, clientcmdv1.NamedContext{
			Name:    n.name,
			Context: clientcmdv1.Context{Cluster: a.cluster, AuthInfo: a.user, Namespace: n.namespace},
		})
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig of %s: %w", a.user, err)
	}
	return data, nil
}
