package fleet

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// pageSize is the number of objects that are read at once.
const pageSize = 250

// listCustom returns a client for the management cluster, and a custom resource's objects in the
// version that its API server prefers.
func listCustom(ctx context.Context, base kubeapi.ConnectOptions, kind schema.GroupKind, namespace string,
	selector labels.Selector) (client.Client, []unstructured.Unstructured, error) {
	cfg, err := kubeapi.Connect(base)
	if err != nil {
		return nil, nil, err
	}
	api, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, nil, err
	}
	doing := "list " + kind.String()
	mapping, err := api.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil, problem.Invalidf("select the management cluster with --kubeconfig and --context",
			"%s: the API server %s does not have this resource", doing, cfg.Host)
	}
	if err != nil {
		return nil, nil, kubeapi.Explain(doing, err)
	}
	var objects []unstructured.Unstructured
	for token := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		err := api.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector},
			client.Limit(pageSize), client.Continue(token))
		if err != nil {
			return nil, nil, kubeapi.Explain(doing, err)
		}
		objects = append(objects, list.Items...)
		if token = list.GetContinue(); token == "" {
			return api, objects, nil
		}
	}
}

// nameOf returns the name of the cluster that an object describes, with its namespace unless the
// source is limited to a namespace.
func (o Source) nameOf(object *unstructured.Unstructured) string {
	if o.Namespace != "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
