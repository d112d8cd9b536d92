//go:build linux && (cases || releases)

package simulate

import (
	"fmt"
	"strings"
)

const zoneLabel = "topology.kubernetes.io/zone"

// shopNamespace is the namespace of the pods, with the ServiceAccount that admission requires.
const shopNamespace = `---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: shop}
automountServiceAccountToken: false
`

// shopNodes is how many nodes [shopCluster] has.
const shopNodes = 24

func shopNode(i int) string { return fmt.Sprintf("n%02d", i) }

// shopCluster has nodes of different sizes in three zones, some with taints, images, GPUs and a
// fast disk, and pods that run on them.
func shopCluster() string {
	var all strings.Builder
	all.WriteString(shopNamespace)
	for i := range shopNodes {
		labels := fmt.Sprintf(`%s: %c, example.com/price: "%.2f", example.com/generation: "%d"`, zoneLabel, 'a'+i%3,
			0.2+0.03*float64(i), i%4)
		resources := fmt.Sprintf(`cpu: "%d", memory: %dGi, pods: "110"`, 5+i*7%12, 9+i*5%23)
		spec, images := "", ""
		if i%4 == 0 {
			labels += ", disk: ssd"
		}
		if i%5 == 0 {
			images = `images: [{names: ["shop/web:1"], sizeBytes: 600000000}]`
		}
		switch i {
		case 6, 7:
			spec = "taints: [{key: example.com/gpu, effect: NoSchedule}]"
			resources += `, example.com/gpu: "8"`
		case 10:
			spec = "taints: [{key: example.com/old, effect: PreferNoSchedule}]"
		case 22:
			spec = "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]"
		}
		all.WriteString(readyNode(shopNode(i), labels, spec, resources, images))
	}
	for i := range 30 {
		all.WriteString(runningPod(fmt.Sprintf("run-%d", i), []string{"web", "db"}[i%2], shopNode(i*5%shopNodes),
			fmt.Sprintf("cpu: %dm, memory: %dMi", 100+50*(i%7), 128*(1+i%5)), ""))
	}
	return all.String()
}

// readyNode returns a node with labels, more of its specification, resources and images, in flow
// style.
func readyNode(name, labels, spec, resources, images string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s, %[2]s}}
spec: {%[3]s}
status:
  capacity: {%[4]s}
  allocatable: {%[4]s}
  conditions: [{type: Ready, status: "True"}]
  %[5]s
`, name, labels, spec, resources, images)
}

// runningPod returns a pod on a node, with more of its specification as lines.
func runningPod(name, app, node, requests, spec string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop, labels: {app: %s}}
spec:
  nodeName: %s
  containers: [{name: main, image: "shop/old:1", resources: {requests: {%s}}}]
%s
status: {phase: Running, startTime: "2026-01-01T00:00:00Z"}
`, name, app, node, requests, indent(spec))
}

// tenShapes adds 200 pods of ten shapes to a cluster, of which 16 of 20 find a GPU.
func tenShapes() *faithful {
	const term = "labelSelector: {matchLabels: {app: %s}}, topologyKey: %s"
	gpu := "{name: main, image: web, resources: {limits: {example.com/gpu: 1}}}"
	ports := `{name: main, image: web, ports: [{containerPort: 80, hostPort: 9000}], resources: {requests: {cpu: 100m}}}`
	shapes := []string{
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}, ports: " +
			"[{port: 80}]}\n",
		deployment("web", 20, `{name: main, image: "shop/web:1", resources: {requests: {cpu: 100m, memory: 128Mi}}}`, ""),
		deployment("big", 20, requesting("cpu: 1, memory: 3Gi"), ""),
		deployment("none", 20, "{name: main, image: web}", ""),
		deployment("ssd", 20, requesting("cpu: 200m, memory: 256Mi"), "nodeSelector: {disk: ssd}"),
		deployment("zoned", 20, requesting("cpu: 150m, memory: 200Mi"), `affinity: {nodeAffinity: {
  requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: `+zoneLabel+`, operator: In, values: [a, b]}]}]},
  preferredDuringSchedulingIgnoredDuringExecution: [{weight: 50, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}}`),
		deployment("gpu", 20, gpu, "tolerations: [{key: example.com/gpu, operator: Exists}]"),
		deployment("apart", 20, requesting("cpu: 100m"),
			"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 70, podAffinityTerm: {"+
				fmt.Sprintf(term, "apart", "kubernetes.io/hostname")+"}}]}}"),
		deployment("near", 20, requesting("cpu: 250m"),
			"affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 80, podAffinityTerm: {"+
				fmt.Sprintf(term, "web", zoneLabel)+"}}]}}"),
		deployment("spread", 20, requesting("cpu: 100m, memory: 64Mi"),
			"topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, "+fmt.Sprintf(term, "spread", zoneLabel)+
				"}]"),
		deployment("port", 20, ports, "initContainers: [{name: first, image: web, resources: {requests: {cpu: 500m}}}]"),
	}
	return &faithful{cluster: shopCluster(), added: strings.Join(shapes, ""), ties: true, pods: 200, unplaced: 4}
}
