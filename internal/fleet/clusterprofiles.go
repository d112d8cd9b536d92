package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// accessProvider is a way to reach a ClusterProfile's cluster (cluster-inventory-api,
// apis/v1alpha1/clusterprofile_types.go, AccessProvider).
type accessProvider struct {
	Name    string              `json:"name"`
	Cluster clientcmdv1.Cluster `json:"cluster"`
}

// profileStatus has the used fields from a ClusterProfile's status. CredentialProviders is the
// former name of AccessProviders, and has lower precedence.
type profileStatus struct {
	AccessProviders     []accessProvider `json:"accessProviders"`
	CredentialProviders []accessProvider `json:"credentialProviders"`
}

// pluginFile is the file that --access-providers names, in the format that other programs read with
// --clusterprofile-provider-file (cluster-inventory-api, pkg/access/config.go). Arguments and
// variables that a ClusterProfile adds to a plugin are ignored, which is the default there.
type pluginFile struct {
	Providers []struct {
		Name string                   `json:"name"`
		Exec *clientcmdapi.ExecConfig `json:"execConfig"`
	} `json:"providers"`
}

// clusterProfiles returns the clusters that ClusterProfiles describe. The credentials come from the
// user's plugins.
func (o Source) clusterProfiles(
	ctx context.Context, base kubeapi.ConnectOptions, selector labels.Selector,
) ([]Cluster, error) {
	if o.AccessProviders == "" {
		return nil, problem.Invalidf("", "--from %s requires --access-providers", FromClusterProfiles)
	}
	text, err := problem.ReadFile("--access-providers", o.AccessProviders)
	if err != nil {
		return nil, err
	}
	var plugins pluginFile
	if err := json.Unmarshal(text, &plugins); err != nil {
		return nil, problem.Invalidf("", "read --access-providers %s: %w", o.AccessProviders, err)
	}
	kind := schema.GroupKind{Group: "multicluster.x-k8s.io", Kind: "ClusterProfile"}
	_, objects, err := listCustom(ctx, base, kind, o.Namespace, selector)
	if err != nil {
		return nil, err
	}
	var list []Cluster
	for i := range objects {
		c := Cluster{Name: o.nameOf(&objects[i]), Labels: objects[i].GetLabels()}
		kubeconfig, err := plugins.kubeconfig(&objects[i])
		if c.connection = loaded(base, kubeconfig); err != nil {
			c.err = fmt.Errorf("read ClusterProfile/%s/%s: %w", objects[i].GetNamespace(), objects[i].GetName(), err)
		}
		list = append(list, c)
	}
	return list, nil
}

// kubeconfig returns the kubeconfig for the first plugin that the ClusterProfile has an address
// for.
func (p pluginFile) kubeconfig(object *unstructured.Unstructured) (*clientcmdapi.Config, error) {
	var profile struct {
		Status profileStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &profile); err != nil {
		return nil, fmt.Errorf("decode its status: %w", err)
	}
	offered := slices.Concat(profile.Status.AccessProviders, profile.Status.CredentialProviders)
	for _, plugin := range p.Providers {
		at := slices.IndexFunc(offered, func(a accessProvider) bool { return a.Name == plugin.Name })
		if at < 0 || plugin.Exec == nil {
			continue
		}
		cluster := clientcmdapi.NewCluster()
		if err := clientcmdlatest.Scheme.Convert(&offered[at].Cluster, cluster, nil); err != nil {
			return nil, fmt.Errorf("decode access provider %s: %w", plugin.Name, err)
		}
		// client-go passes the cluster's extension client.authentication.k8s.io/exec to the plugin if
		// provideClusterInfo is set.
		user := &clientcmdapi.AuthInfo{Exec: plugin.Exec.DeepCopy()}
		return single(object.GetName(), cluster, user), checkUntrusted(cluster, user, true)
	}
	var names []string
	for _, a := range offered {
		names = append(names, a.Name)
	}
	if len(names) == 0 {
		return nil, errors.New("its status has no access providers")
	}
	return nil, problem.Errorf("add one of them to the file of --access-providers",
		"--access-providers has none of its access providers: %s", strings.Join(names, ", "))
}
