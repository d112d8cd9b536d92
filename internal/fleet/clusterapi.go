package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// Cluster API's Secrets with kubeconfigs (cluster-api, util/secret/consts.go and
// api/core/v1beta1/common_types.go, ClusterSecretType).
const (
	capiSecretType   corev1.SecretType = "cluster.x-k8s.io/secret"
	capiSecretSuffix string            = "-kubeconfig"
	capiSecretKey    string            = "value"
)

// clusterAPI returns the clusters that Cluster API manages. It reads each cluster's Secret by its
// name: a list of these Secrets contains the private keys of all certificate authorities.
func (o Source) clusterAPI(
	ctx context.Context, base kubeapi.ConnectOptions, selector labels.Selector,
) ([]Cluster, error) {
	kind := schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}
	api, objects, err := listCustom(ctx, base, kind, o.Namespace, selector)
	if err != nil {
		return nil, err
	}
	var list []Cluster
	for i := range objects {
		object := &objects[i]
		c := Cluster{Name: o.nameOf(object), Labels: object.GetLabels()}
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName() + capiSecretSuffix}
		kubeconfig, err := o.capiKubeconfig(ctx, api, key)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c.connection = loaded(base, kubeconfig); err != nil {
			c.err = fmt.Errorf("read Secret/%s: %w", key, err)
		}
		list = append(list, c)
	}
	return list, nil
}

func (o Source) capiKubeconfig(
	ctx context.Context, api client.Client, key types.NamespacedName,
) (*clientcmdapi.Config, error) {
	var secret corev1.Secret
	err := api.Get(ctx, key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, problem.Errorf("wait until Cluster API has created the control plane", "it does not exist")
	case err != nil:
		return nil, kubeapi.Explain("get it", err)
	case secret.Type != capiSecretType:
		return nil, fmt.Errorf("its type is %q, not %q", secret.Type, capiSecretType)
	case len(secret.Data[capiSecretKey]) == 0:
		return nil, fmt.Errorf("it has no key %s", capiSecretKey)
	}
	return parseUntrusted(secret.Data[capiSecretKey], o.AllowExec)
}
