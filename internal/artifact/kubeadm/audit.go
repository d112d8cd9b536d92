package kubeadm

// The audit log of an API server is on its control-plane node. It lists who bound which pod, and
// who held the leases of the control plane, to prove that two schedulers were never leaders at the
// same time.
const (
	AuditPolicyPath = "/etc/kubernetes/audit-policy.yaml"
	AuditLogDir     = "/var/log/kubernetes"
	auditLog        = AuditLogDir + "/audit.log"
)

// AuditPolicy returns the policy of the audit log. A binding is logged when it is received too: an
// API server that is killed does not log the response.
func AuditPolicy() string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Request
  verbs: [create]
  resources: [{group: "", resources: [bindings, pods/binding]}]
- level: Request
  omitStages: [RequestReceived]
  verbs: [create, update]
  namespaces: [kube-system]
  resources: [{group: coordination.k8s.io, resources: [leases]}]
- level: None
`
}

func (c Cluster) apiServer() object {
	return object{
		"extraArgs": c.extraArgs(map[string]string{
			"audit-log-maxbackup": "1",
			"audit-log-maxsize":   "100",
			"audit-log-path":      auditLog,
			"audit-policy-file":   AuditPolicyPath,
		}),
		"extraVolumes": []any{
			object{"name": "audit-policy", "hostPath": AuditPolicyPath, "mountPath": AuditPolicyPath, "readOnly": true,
				"pathType": "File"},
			object{"name": "audit-log", "hostPath": AuditLogDir, "mountPath": AuditLogDir,
				"pathType": "DirectoryOrCreate"},
		},
	}
}
