//go:build linux

package apply_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }

// objects of a scheduler, not in the order of applying. NAME, NS and DATA are replaced.
const objectsYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/instance: NAME}}
  template:
    metadata: {labels: {app.kubernetes.io/instance: NAME}}
    spec:
      serviceAccountName: NAME
      nodeSelector: {node-role.kubernetes.io/master: ""}
      tolerations: [{key: node-role.kubernetes.io/master, operator: Exists, effect: NoSchedule}]
      containers:
      - name: kube-scheduler
        image: localhost/scheduler:1
        ports: [{containerPort: 10260, name: https}]
      volumes:
      - {name: config, configMap: {name: NAME-config-DATA}}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-credentials-DATA, namespace: NS}
immutable: true
data: {tls.key: a2V5LURBVEE=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-config-DATA, namespace: NS}
immutable: true
data: {NAME.yaml: "data: DATA"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME-as-kube-scheduler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler"}
subjects: [{kind: ServiceAccount, name: NAME, namespace: NS}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: NAME-lease, namespace: NS}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [NAME], verbs: [get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME-lease, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME-lease}
subjects: [{kind: ServiceAccount, name: NAME, namespace: NS}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME, namespace: NS}
`

// objects returns the objects of scheduler name in namespace ns, with the labels of pmk-sched; data
// distinguishes configurations.
func objects(t *testing.T, name, ns, data string) []*unstructured.Unstructured {
	t.Helper()
	text := strings.NewReplacer("NAME", name, "NS", ns, "DATA", data).Replace(objectsYAML)
	var objs []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		obj := &unstructured.Unstructured{}
		json, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if err := obj.UnmarshalJSON(json); err != nil {
			t.Fatal(err)
		}
		obj.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "pmk-sched", "app.kubernetes.io/instance": name})
		objs = append(objs, obj)
	}
	return objs
}

// find returns the object of that kind.
func find(t *testing.T, objs []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, obj := range objs {
		if obj.GetKind() == kind {
			return obj
		}
	}
	t.Fatalf("no %s among the objects", kind)
	return nil
}

func newClient(t *testing.T, cfg *rest.Config, options ...func(*apply.Options)) *apply.Client {
	t.Helper()
	o := apply.Options{Log: zaptest.NewLogger(t), LockDuration: 5 * time.Second}
	for _, set := range options {
		set(&o)
	}
	client, err := apply.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// testContext ends with the test, and before a hanging test is stopped from outside.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
