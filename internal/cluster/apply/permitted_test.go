package apply

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// permittedObjects are objects of scheduler my in namespace ns.
const permittedObjects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: my, namespace: ns}
spec:
  template:
    spec:
      serviceAccountName: my
      hostNetwork: true
      containers:
      - {name: kube-scheduler, image: s, securityContext: {privileged: false}}
      volumes:
      - {name: config-file, configMap: {name: my-config-1}}
      - {name: credentials, secret: {secretName: my-credentials-1}}
      - {name: extender-ext-client, secret: {secretName: ext-client}}
      - {name: kubeconfig-file, hostPath: {path: /etc/kubernetes/scheduler.conf, type: File}}
---
apiVersion: v1
kind: Secret
metadata: {name: my-credentials-1, namespace: ns}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: my-config-1, namespace: ns}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: my-as-kube-scheduler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler"}
subjects: [{kind: ServiceAccount, name: my, namespace: ns}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: my-extension-apiserver-authentication-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: User, name: "system:kube-scheduler", apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: my-plugins}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: my-lease, namespace: leases}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [my], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: my-lease, namespace: leases}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: my-lease}
subjects: [{kind: ServiceAccount, name: my, namespace: ns}]
---
apiVersion: v1
kind: Service
metadata: {name: my, namespace: ns}
spec: {type: ClusterIP, selector: {a: b}, ports: [{port: 443}]}
`

func objectsOf(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objs []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		json, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(json); err != nil {
			t.Fatal(err)
		}
		obj.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "pmk-sched", "app.kubernetes.io/instance": "my"})
		objs = append(objs, obj)
	}
	return objs
}

const (
	registration = "\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: Mutating"
	newPods      = `{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}`
	routeMeta    = "metadata: {name: pmk-sched-route-my}\n"
	routeWebhook = registration + "WebhookConfiguration\n" + routeMeta + "webhooks: [{name: my.route.pmk-sched.io, " +
		"clientConfig: {service: {name: pmk-sched-admission, namespace: ns}}, failurePolicy: Ignore, rules: [" + newPods + "]}]"
	routePolicy = registration + "AdmissionPolicy\n" + routeMeta + "spec: {failurePolicy: Ignore, matchConstraints: " +
		"{resourceRules: [" + newPods + `]}, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: ` +
		`'Object{metadata: Object.metadata{annotations: {"pmk-sched.io/route": "my"}}, ` +
		`spec: Object.spec{schedulerName: "my"}}'}}]}` + registration + "AdmissionPolicyBinding\n" + routeMeta +
		"spec: {policyName: pmk-sched-route-my}"
	conditions = "matchConditions: [{name: is-in-the-share, expression: 'false'}]"
)

// Users who may write Secrets in the namespace can write a revision.
func TestObjectsThatPmkSchedDoesNotRenderAreRefused(t *testing.T) {
	const rbac = "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: "
	for name, tc := range map[string]struct{ replace, with, want string }{
		"none": {},
		"a user of its own": {"hostNetwork: true", "securityContext: {runAsUser: 1, runAsNonRoot: true, fsGroup: 1, " +
			"seccompProfile: {type: RuntimeDefault}}", ""},
		"a system call filter": {"hostNetwork: true", "securityContext: {seccompProfile: {type: Unconfined}}",
			"has a security context that pmk-sched does not set"},
		"a kernel parameter": {"hostNetwork: true", "securityContext: {sysctls: [{name: a, value: b}]}",
			"has a security context that pmk-sched does not set"},
		"more privileges later": {"privileged: false", "allowPrivilegeEscalation: true", "is privileged"},
		"root":                  {"privileged: false", "runAsUser: 0", "has a security context that pmk-sched does not set"},
		"an annotation of the pods": {"  template:\n    spec:", "  template:\n    metadata: {annotations: {a/b: c}}\n    spec:",
			`has the annotation "a/b"`},
		"a service of another type": {"type: ClusterIP,", "type: NodePort,", "has fields of its spec that pmk-sched does not set"},
		"a file type of the node":   {"type: File", "type: Directory", "of the node"},
		"another API group": {"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole,",
			"roleRef: {apiGroup: example.com, kind: ClusterRole,", "binds ClusterRole"},
		"a user without a name": {`{kind: User, name: "system:kube-scheduler"`, `{kind: User, name: ""`,
			"grants permissions to User"},
		"cluster-admin": {`name: "system:kube-scheduler"}
subjects: [{kind: S`, `name: cluster-admin}
subjects: [{kind: S`, `ClusterRoleBinding/my-as-kube-scheduler binds ClusterRole "cluster-admin"`},
		"a role of others": {"kind: Role, name: my-lease", "kind: Role, name: my-other", `binds Role "my-other"`},
		"a reader elsewhere": {"my-extension-apiserver-authentication-reader, namespace: kube-system",
			"my-extension-apiserver-authentication-reader, namespace: default", "is not in namespace ns"},
		"another account": {"{kind: ServiceAccount, name: my, namespace: ns}", "{kind: ServiceAccount, name: my, namespace: b}",
			`grants permissions to ServiceAccount "my"`},
		"a group": {`{kind: User, name: "system:kube-scheduler"`, `{kind: Group, name: "system:masters"`,
			`grants permissions to Group "system:masters"`},
		"another kind": {"", "\n---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: my, namespace: ns}",
			"is of a kind that no scheduler has: apps/v1, Kind=DaemonSet"},
		"a webhook of another name": {"", registration + "WebhookConfiguration\nmetadata: {name: my}",
			"does not have a name of an object of my"},
		"the route's webhook": {"", routeWebhook, ""},
		"the webhook for a share": {"", strings.Replace(routeWebhook, "name: my.route.pmk-sched.io,",
			"name: my.route.pmk-sched.io, "+conditions+",", 1), ""},
		"the policy for a share": {"", strings.Replace(routePolicy, "spec: {", "spec: {"+conditions+", ", 1), ""},
		"a webhook elsewhere": {"", strings.Replace(routeWebhook, "service: {name: pmk-sched-admission, namespace: ns}",
			"url: 'https://e'", 1), "something else"},
		"another Service":             {"", strings.Replace(routeWebhook, "pmk-sched-admission", "other", 1), "something else"},
		"a webhook for Secrets":       {"", strings.Replace(routeWebhook, "[pods]", "[secrets]", 1), "something else"},
		"a webhook that fails closed": {"", strings.Replace(routeWebhook, "Ignore", "Fail", 1), "something else"},
		"the route's policy":          {"", routePolicy, ""},
		"another change": {"", strings.Replace(routePolicy, "schedulerName: ", "hostNetwork: true, schedulerName: ", 1),
			"something else"},
		"a policy for Secrets":    {"", strings.Replace(routePolicy, "[pods]", "[secrets]", 1), "something else"},
		"another policy is bound": {"", strings.Replace(routePolicy, "policyName: ", "policyName: other-", 1), `binds "other-`},
		"a namespace":             {"", "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: my}", "is of a kind that no scheduler has"},
		"another name": {"", "\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: ns}",
			"does not have a name of an object of my"},
		"another namespace": {"", "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: my, namespace: b}",
			"is not in namespace ns"},
		"an aggregated role": {"", rbac + "ClusterRole\nmetadata: {name: my-all}\naggregationRule: {clusterRoleSelectors: " +
			"[{matchLabels: {a: b}}]}", "aggregates other roles"},
		"an account of a cloud": {"", "\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: my, namespace: ns, " +
			"annotations: {eks.amazonaws.com/role-arn: a}}", `has the annotation "eks.amazonaws.com/role-arn"`},
		"an owner": {"metadata: {name: my-config-1, namespace: ns}", "metadata: {name: my-config-1, namespace: ns, " +
			"ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: b}]}", `has the metadata "ownerReferences"`},
		"a privileged pod":     {"privileged: false", "privileged: true", "is privileged"},
		"a capability":         {"privileged: false", "capabilities: {add: [SYS_ADMIN]}", "is privileged"},
		"the processes":        {"hostNetwork: true", "hostPID: true", "has fields of its pods that pmk-sched does not set"},
		"a node":               {"hostNetwork: true", "nodeName: a", "has fields of its pods that pmk-sched does not set"},
		"an init container":    {"hostNetwork: true", "initContainers: [{name: a}]", "has fields of its pods"},
		"another account runs": {"serviceAccountName: my", "serviceAccountName: admin", `uses ServiceAccount "admin"`},
		"a directory of the node": {"path: /etc/kubernetes/scheduler.conf, type: File", "path: /, type: Directory",
			`is "/" of the node`},
		"another volume of the node": {"{name: kubeconfig-file,", "{name: other,", `of the node`},
		"a Secret of others":         {"secretName: my-credentials-1", "secretName: admin", `is Secret "admin" of others`},
		"a token": {"configMap: {name: my-config-1}", "projected: {sources: [{serviceAccountToken: {path: a}}]}",
			"is of a kind that pmk-sched does not mount"},
		"a variable": {"image: s,", "image: s, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}],",
			"reads the variable A"},
		"a hook": {"image: s,", "image: s, lifecycle: {postStart: {exec: {command: [a]}}},",
			"has fields that pmk-sched does not set"},
		"another container": {"name: kube-scheduler, image", "name: other, image", "pmk-sched does not have"},
		"unknown field":     {"hostNetwork: true", "future: true", "cannot be decoded"},
		"an external service": {"type: ClusterIP,", "type: ClusterIP, externalIPs: [10.0.0.1],",
			"has fields of its spec that pmk-sched does not set"},
	} {
		t.Run(name, func(t *testing.T) {
			text := permittedObjects + tc.with
			if tc.replace != "" {
				if text = strings.Replace(permittedObjects, tc.replace, tc.with, 1); text == permittedObjects {
					t.Fatal("nothing was replaced")
				}
			}
			err := CheckObjects(objectsOf(t, text), "ns", "my")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
