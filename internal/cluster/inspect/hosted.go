package inspect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hosted describes a control plane that runs outside the cluster: no node has a file, a static pod
// or the scheduler's credentials.
type Hosted struct {
	// Kind is the product, or "of unknown kind".
	Kind string `json:"kind"`
	// Evidence is the fact by which the kind was recognized. It is empty for an unknown kind.
	Evidence string `json:"evidence,omitempty"`
	// Impossible lists what cannot be done on the cluster, with the reasons.
	Impossible []string `json:"impossible"`
	// Unknown lists what cannot be known about the control plane from the cluster.
	Unknown []string `json:"unknown"`
	// Command deploys a scheduler.
	Command string `json:"command"`
}

// UnknownKind is the Kind for a hosted control plane whose product is unknown.
const UnknownKind = "of unknown kind"

// isHosted reports whether the control plane is outside the cluster: the cluster has nodes, none is
// a control-plane node, and no static pod runs the scheduler.
func (d *detector) isHosted() bool { return d.traits.nodeless && d.info.Nodes.Count > 0 }

// readConfigMaps looks for the ConfigMaps that identify a hosted control plane.
func (d *detector) readConfigMaps(ctx context.Context) {
	found := func(configMap, evidence string) {
		if d.traits.configMaps == nil {
			d.traits.configMaps = map[string]string{}
		}
		d.traits.configMaps[configMap] = evidence
	}
	for _, row := range distributions() {
		if row.configMap != "" {
			_, err := d.core.ConfigMaps(kubeSystem).Get(ctx, row.configMap, metav1.GetOptions{})
			if err == nil {
				found(row.configMap, "ConfigMap/"+kubeSystem+"/"+row.configMap)
			} else if !apierrors.IsNotFound(err) {
				d.warnUnread(err, "get ConfigMap/"+kubeSystem+"/"+row.configMap, "whether this is "+row.product+" is unknown")
			}
		}
		if row.configMapLabel != "" {
			list, err := d.core.ConfigMaps(kubeSystem).List(ctx, metav1.ListOptions{LabelSelector: row.configMapLabel, Limit: 1})
			if err != nil {
				d.warnUnread(err, "list ConfigMaps in "+kubeSystem, "whether this is "+row.product+" is unknown")
			} else if len(list.Items) > 0 {
				found(row.configMapLabel, "label "+row.configMapLabel+" of ConfigMap/"+kubeSystem+"/"+list.Items[0].Name)
			}
		}
	}
}

// describeHosted describes the identified distribution's hosted control plane.
func (d *detector) describeHosted(row distribution, evidence string) {
	h := &Hosted{Kind: row.product, Evidence: evidence,
		Impossible: []string{
			"replace, restore: the default scheduler is not a static pod of a node",
			"--credentials node, node-inline, hostpath: no node has the default scheduler's kubeconfig",
		},
		Unknown: []string{
			"version, flags and configuration of the default scheduler",
			"whether all API servers have the release of the one that answered",
		},
		Command: "pmk-sched deploy --name my-scheduler --preset binpack",
	}
	switch {
	case row.name == "" || row.layout != LayoutManaged && !row.agentless: // nodes that "kubeadm join" added, for example
		row.name, h.Kind, h.Evidence = DistributionHosted, UnknownKind, ""
		h.Unknown = append(h.Unknown, "the product: no version suffix, no label or annotation of a node and no ConfigMap "+
			"in kube-system names one that pmk-sched knows")
		if !d.serversKnown {
			h.Unknown = append(h.Unknown, "whether the control plane is outside of the cluster: no label and no static pod shows "+
				"a control-plane node, and the addresses of the API servers are unknown")
		}
		if unread := d.info.Nodes.Count - d.workersRead; unread > 0 {
			h.Unknown = append(h.Unknown, fmt.Sprintf("the labels and annotations of %d of the %d nodes: %d were read", unread,
				d.info.Nodes.Count, d.workersRead))
		}
	case h.Kind == "":
		h.Kind = row.name
	}
	if row.note != "" {
		h.Unknown = append(h.Unknown, row.note)
	}
	d.info.Distribution, d.info.Layout, d.info.Hosted = row.name, LayoutManaged, h
}
