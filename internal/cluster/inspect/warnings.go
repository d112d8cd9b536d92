package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Thresholds for warnings.
const (
	certificateSoon = 30 * 24 * time.Hour
	leaseStale      = time.Minute
)

// lease reads the leader of the default schedulers.
func (d *detector) lease(ctx context.Context) {
	lease := &d.info.Scheduler.Lease
	found, err := kubeapi.DefaultLease(ctx, d.leases, d.schedulers)
	if err != nil {
		d.warnUnread(err, "get lease kube-scheduler", "the leader of the default schedulers is unknown")
		return
	}
	if found == nil {
		return // leader election may be off
	}
	lease.Namespace = cmp.Or(found.Namespace, lease.Namespace)
	if found.Spec.HolderIdentity != nil {
		lease.Holder = *found.Spec.HolderIdentity
	}
	if found.Spec.RenewTime == nil {
		return
	}
	lease.Renewed = &found.Spec.RenewTime.Time
	if age := d.o.Now().Sub(*lease.Renewed); lease.Holder != "" && age > leaseStale {
		d.warn("the default scheduler's lease was last renewed %s ago, by %s: check that it is running",
			age.Round(time.Second), lease.Holder)
	}
}

// checkAll warns about problems in the collected information.
func (d *detector) checkAll(ctx context.Context) {
	d.checkKubelets()
	d.checkControlPlane()
	d.checkWorkers(ctx)
	d.checkSchedulers()
	d.checkDeployed()
	if expires := d.info.Credentials.Expires; expires != nil {
		if left := expires.Sub(d.o.Now()); left > 0 && left < certificateSoon {
			d.warn("the certificate in %s expires in %s, on %s: a scheduler with a copy of it stops then",
				d.info.Credentials.Kubeconfig, plural.Count(int(left.Hours()/24), "day"), expires.Format(time.DateOnly))
		}
	}
}

// checkKubelets warns about nodes whose kubelet has another minor than the API
// server: an upgrade is in progress or incomplete.
func (d *detector) checkKubelets() {
	server := d.info.Release
	for _, kubelet := range d.info.Nodes.Kubelets {
		release, err := versions.FromServer(kubelet.Version)
		if err != nil || (release.Major == server.Major && release.Minor == server.Minor) {
			continue // fake nodes have invalid versions
		}
		meaning := "an upgrade is in progress or incomplete"
		switch behind := server.Minor - release.Minor; {
		case release.Compare(server) > 0:
			meaning = "Kubernetes does not support kubelets newer than the API server"
		case d.rules.KubeletSkew > 0 && behind > d.rules.KubeletSkew:
			meaning = fmt.Sprintf("Kubernetes supports kubelets at most %s older", plural.Count(d.rules.KubeletSkew, "minor"))
		}
		d.warn("%d of %s kubelet %s (%s), the API server is %s: %s", kubelet.Count,
			plural.Phrase(d.info.Nodes.Count, "node runs", "nodes run"), kubelet.Version, exampleList(kubelet), server, meaning)
	}
}

func exampleList(kubelet KubeletCount) string {
	list := strings.Join(kubelet.Examples, ", ")
	if kubelet.Count > len(kubelet.Examples) {
		list += ", …"
	}
	return list
}

func (d *detector) checkControlPlane() {
	var architectures []string
	for _, node := range d.info.ControlPlane.Nodes {
		if !node.Ready {
			d.warn("control-plane node %s is not ready", node.Name)
		}
		architectures = append(architectures, node.OS+"/"+node.Architecture)
	}
	slices.Sort(architectures)
	if architectures = slices.Compact(architectures); len(architectures) > 1 {
		d.warn("control-plane nodes have different platforms: build an image for %s", strings.Join(architectures, ","))
	}
}

// maxArchitectures bounds how many node architectures are looked for.
const maxArchitectures = 8

// checkWorkers warns about nodes of several architectures where the scheduler may run on any node.
// It reads one node of each.
func (d *detector) checkWorkers(ctx context.Context) {
	if d.info.Hosted == nil {
		return
	}
	selector := corev1.LabelOSStable + "=linux," + corev1.LabelArchStable
	var platforms []string
	for range maxArchitectures {
		nodes, err := d.core.Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
		if err != nil {
			d.warnUnread(err, "list nodes by architecture", "whether one image runs on all nodes is unknown")
			return
		}
		if len(nodes.Items) == 0 {
			break
		}
		architecture := nodes.Items[0].Labels[corev1.LabelArchStable]
		platforms = append(platforms, "linux/"+architecture)
		selector += "," + corev1.LabelArchStable + "!=" + architecture
	}
	if len(platforms) > 1 {
		slices.Sort(platforms)
		d.warn("nodes have different platforms: build an image for %s, or select nodes of one with --node-selector %s=%s",
			strings.Join(platforms, ","), corev1.LabelArchStable, strings.TrimPrefix(platforms[0], "linux/"))
	}
}

func (d *detector) checkSchedulers() {
	for _, pod := range d.info.Scheduler.Pods {
		if !pod.Ready {
			d.warn("the default scheduler's pod %s/%s is not ready", pod.Namespace, pod.Name)
		}
		release, ok := ImageRelease(pod.Image)
		if ok && (release.Major != d.info.Release.Major || release.Minor != d.info.Release.Minor) {
			d.warn(
				"the default scheduler on node %s is %s, the API server is %s: an upgrade of the control plane is in progress or "+
					"incomplete", pod.Node, release, d.info.Release)
		}
	}
}

// ImageRelease returns the release in an image's tag.
func ImageRelease(image string) (versions.Release, bool) {
	image, _, _ = strings.Cut(image, "@")
	colon := strings.LastIndex(image, ":")
	if colon < strings.LastIndex(image, "/") || colon < 0 {
		return versions.Release{}, false
	}
	release, err := versions.FromServer(image[colon+1:])
	return release, err == nil
}
