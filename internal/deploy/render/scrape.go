package render

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

const (
	operatorAPI = "monitoring.coreos.com/v1"
	rbacGroup   = "rbac.authorization.k8s.io"
	rbacAPI     = rbacGroup + "/v1"
	servicePort = "https-metrics"
)

// account is the identity with which Prometheus reads the metrics. It has no other permission, so
// that Prometheus's own account needs none.
func (m monitored) account() *unstructured.Unstructured {
	return m.object("v1", "ServiceAccount", fields{"automountServiceAccountToken": false})
}

// token is filled by the cluster with a token for the account.
func (m monitored) token() *unstructured.Unstructured {
	secret := m.object("v1", "Secret", fields{"type": "kubernetes.io/service-account-token"})
	secret.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": m.objectName()})
	return secret
}

func (m monitored) role() *unstructured.Unstructured {
	return m.clusterObject(rbacAPI, "ClusterRole", fields{
		"rules": []any{fields{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}}},
	})
}

func (m monitored) roleBinding() *unstructured.Unstructured {
	return m.clusterObject(rbacAPI, "ClusterRoleBinding", fields{
		"roleRef":  fields{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": m.objectName()},
		"subjects": []any{fields{"kind": "ServiceAccount", "name": m.objectName(), "namespace": m.Namespace}},
	})
}

// service lists the pods for the ServiceMonitor. Nothing connects to it.
func (m monitored) service() *unstructured.Unstructured {
	selector := fields{}
	for key, value := range m.PodLabels {
		selector[key] = value
	}
	return m.object("v1", "Service", fields{"spec": fields{
		"clusterIP": "None",
		"selector":  selector,
		"ports":     []any{fields{"name": servicePort, "port": int64(443), "targetPort": m.PortName, "protocol": "TCP"}},
	}})
}

// serviceMonitor has Prometheus scrape every replica. The scheduler signs its serving certificate
// itself. bearerTokenSecret is the field that every operator version reads.
func (m monitored) serviceMonitor() *unstructured.Unstructured {
	return m.object(operatorAPI, "ServiceMonitor", fields{"spec": fields{
		"selector": fields{"matchLabels": m.labels()},
		"endpoints": []any{fields{
			"port": servicePort, "scheme": "https", "path": "/metrics",
			"tlsConfig":         fields{"insecureSkipVerify": true},
			"bearerTokenSecret": fields{"name": m.objectName(), "key": "token"},
		}},
	}})
}
