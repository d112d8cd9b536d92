package profiles_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What users have in their hands: the one configuration in it is read, at its place in the file.
func TestConfigurationsAreFoundWhereverTheyAreKept(t *testing.T) {
	const config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 7\n"
	indented := func(by int) string {
		return strings.ReplaceAll(strings.TrimSpace(config), "\n", "\n"+strings.Repeat(" ", by))
	}
	results := transcript{}
	for name, source := range map[string]string{
		"list": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ServiceAccount\n  metadata: {name: a}\n" +
			"- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n  data:\n    c.yaml: |\n      " + indented(6) + "\n",
		"kubeadm control plane": "apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: KubeadmControlPlane\n" +
			"metadata: {name: cp}\nspec:\n  kubeadmConfigSpec:\n    files:\n    - path: /etc/kubernetes/audit.yaml\n" +
			"      content: |\n        apiVersion: audit.k8s.io/v1\n        kind: Policy\n        rules: []\n" +
			"    - path: /etc/kubernetes/scheduler.yaml\n      content: |\n        " + indented(8) + "\n" +
			"    clusterConfiguration: {scheduler: {extraArgs: {config: /etc/kubernetes/scheduler.yaml}}}\n",
		"secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {c.yaml: " +
			base64.StdEncoding.EncodeToString([]byte(config)) + ", key: bm90IGl0}\n",
		"audit policy beside it": "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n---\n" + config,
		"applied by kubectl": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n" +
			"    kubectl.kubernetes.io/last-applied-configuration: '{\"kind\": \"KubeSchedulerConfiguration\"}'\n" +
			"data:\n  c.yaml: |\n    " + indented(4) + "\n",
		"helm values": "scheduler:\n  name: packer\n  image: example.com/kube-scheduler:v0.31.8\n  leaderElect: false\n" +
			"controller: {replicaCount: 1}\nplugins:\n  enabled: [Coscheduling]\n  disabled: [PrioritySort]\n" +
			"pluginConfig:\n- name: Coscheduling\n  args: {permitWaitingTimeSeconds: 10}\n",
		"helm release": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\nspec:\n  values:\n" +
			"    scheduler: {name: packer}\n    plugins: {enabled: [Coscheduling]}\n",
		"value of a chart": "schedulerConfig:\n  apiVersion: kubescheduler.config.k8s.io/v1\n" +
			"  kind: KubeSchedulerConfiguration\n  parallelism: 7\n",
		"damaged beside it": "kind: Deployment\nspec: [\n---\n" + config,
		"damaged itself":    "kind: Deployment\nspec: {}\n---\n" + config + "profiles: [\n",
		"two":               config + "---\nkind: Anything\nspec: {text: \"kind: KubeSchedulerConfiguration\"}\n",
		"none":              "kind: Deployment\nmetadata: {name: d}\n---\nkind: Service\n",
	} {
		converted, err := convertTo(t, "v1", source, false)
		results.addConverted(name, err, converted)
	}
	results.equal(t, "convert-found.txt")
}

// Platform9's article has the whole manifest, in print over several pages.
func TestManifestOfTheArticleIsReadAsItIsPrinted(t *testing.T) {
	results := transcript{}
	for _, file := range []string{"manifest.yaml", "manifest-as-printed.yaml"} {
		source, err := os.ReadFile(filepath.Join("../test/testdata/article", file))
		if err != nil {
			t.Fatal(err)
		}
		converted, err := convertTo(t, "v1.24.3", string(source), false)
		results.addConverted(file, err, converted)
	}
	results.equal(t, "convert-article.txt")
}
