package inspect

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// serverNodes adds the nodes on which API servers run, by the addresses behind the Service
// kubernetes. Without a label on its nodes, and with a scheduler that is not a static pod, a
// control plane looks like a hosted one otherwise.
func (d *detector) serverNodes(ctx context.Context, found map[string]corev1.Node) {
	addresses, err := d.serverAddresses(ctx)
	if err != nil {
		d.warnUnread(err, "read the addresses of the Service kubernetes",
			"whether API servers run on nodes of the cluster is unknown")
	}
	if len(addresses) == 0 {
		return
	}
	d.serversKnown = true
	var names []string
	err = kubeapi.ReadTable(ctx, d.core.RESTClient(), "", "nodes", []string{"Name", "Internal-IP"}, func(cells []string) {
		if slices.Contains(addresses, cells[1]) {
			names = append(names, cells[0])
		}
	})
	if err != nil {
		d.warnUnread(err, "list the addresses of nodes", "whether API servers run on nodes of the cluster is unknown")
	}
	for _, name := range names {
		node, err := d.core.Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			d.warnUnread(err, "get node "+name, "it runs an API server, and is left out of the control-plane nodes")
			continue
		}
		found[name] = *node
	}
}

// serverAddresses returns the API servers' addresses, which they write into the endpoints of the
// Service kubernetes. There are none if the object does not exist.
func (d *detector) serverAddresses(ctx context.Context) ([]string, error) {
	path := "/api/v1/namespaces/default/endpoints/kubernetes"
	if d.rules.DiscoveryV1 {
		path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
	}
	raw, err := rawResult(d.core.RESTClient().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var object struct {
		Endpoints []discoveryv1.Endpoint  `json:"endpoints"`
		Subsets   []corev1.EndpointSubset `json:"subsets"` //nolint:staticcheck // for 1.20
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	var addresses []string
	for _, endpoint := range object.Endpoints {
		addresses = append(addresses, endpoint.Addresses...)
	}
	for _, subset := range object.Subsets {
		for _, address := range subset.Addresses {
			addresses = append(addresses, address.IP)
		}
	}
	return addresses, nil
}
