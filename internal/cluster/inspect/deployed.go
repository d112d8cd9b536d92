package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/versions"
)

// deployed finds the schedulers that pmk-sched has deployed. Their release is a label on their
// Deployments.
func (d *detector) deployed(ctx context.Context) {
	found, err := kubeapi.InstalledDeployments(ctx, d.apps, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		found, err = kubeapi.InstalledDeployments(ctx, d.apps, d.o.SchedulerNamespace)
	}
	if err != nil {
		d.warnUnread(err, "list deployments", "the schedulers deployed by pmk-sched are unknown")
		return
	}
	for i := range found {
		if found[i].Labels[ownership.LabelName] == ownership.Extender {
			continue
		}
		described := describeDeployed(&found[i], d.info.Release)
		if d.o.Name == "" || described.Name == d.o.Name && described.Namespace == d.o.SchedulerNamespace {
			d.examineDeployed(ctx, &found[i], &described)
		}
		d.info.Scheduler.Deployed = append(d.info.Scheduler.Deployed, described)
	}
	slices.SortFunc(d.info.Scheduler.Deployed, func(a, b DeployedScheduler) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// examineDeployed adds what a deployed scheduler's ConfigMaps and Secrets contain.
func (d *detector) examineDeployed(ctx context.Context, deployment *appsv1.Deployment, described *DeployedScheduler) {
	var err error
	if described.Certificate, err = readMountedCertificate(ctx, d.core, deployment); err != nil {
		d.warn("%v: when the certificate of scheduler %s in namespace %s expires is unknown", err, described.Name,
			described.Namespace)
	}
	if described.DependsOn, err = d.dependsOn(ctx, deployment); err != nil {
		d.warn("%v: whether scheduler %s in namespace %s depends on one control-plane node is unknown", err, described.Name,
			described.Namespace)
	}
	d.deployedProblems(ctx, deployment)
}

// describeDeployed compares a deployed scheduler with the API server's release. Only the minor has
// to be the same.
func describeDeployed(deployment *appsv1.Deployment, server versions.Release) DeployedScheduler {
	described := DeployedScheduler{Name: deployment.Labels[ownership.LabelInstance], Namespace: deployment.Namespace}
	if containers := deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
		described.Image = containers[0].Image
	}
	release, err := versions.FromServer(deployment.Labels[ownership.LabelRelease])
	if err != nil {
		return described
	}
	described.Release = release.String()
	if release.Major == server.Major && release.Minor == server.Minor {
		return described
	}
	described.Due = server.String()
	if deployment.Labels[ownership.LabelManagedBy] == ownership.Manager { // Helm upgrades its own releases
		described.Command = upgradeCommand(described)
	}
	return described
}

// upgradeCommand returns the command that builds and deploys a scheduler again, for the API
// server's release.
func upgradeCommand(deployed DeployedScheduler) string {
	command := "pmk-sched"
	if deployed.Namespace != kubeSystem {
		command += " -n " + deployed.Namespace
	}
	return command + " upgrade --name " + deployed.Name
}

// Retag returns the image's name for another release, without a digest. It replaces the release in
// the tag. If there is none, the release becomes the tag.
func Retag(image, from, to string) string {
	image, _, _ = strings.Cut(image, "@")
	repository, tag := image, ""
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		repository, tag = image[:colon], image[colon+1:]
	}
	from, bare := strings.TrimPrefix(from, "v"), strings.TrimPrefix(to, "v")
	if !strings.Contains(tag, from) {
		return repository + ":" + to
	}
	return repository + ":" + strings.Replace(tag, from, bare, 1)
}

// checkDeployed warns about deployed schedulers whose minor differs from the API server's, and
// about certificates that expire soon.
func (d *detector) checkDeployed() {
	for _, deployed := range d.info.Scheduler.Deployed {
		if warning := deployed.Certificate.Warning(fmt.Sprintf("scheduler %s in namespace %s", deployed.Name,
			deployed.Namespace), d.o.Now()); warning != "" {
			d.info.Warnings = append(d.info.Warnings, warning)
		}
		if deployed.DependsOn != "" {
			d.warn("all replicas of scheduler %s in namespace %s use the API server of node %s: deploy it again", deployed.Name,
				deployed.Namespace, deployed.DependsOn)
		}
		switch {
		case deployed.Release == "":
			d.warn("the release of scheduler %s in namespace %s is unknown", deployed.Name, deployed.Namespace)
		case deployed.Due != "" && deployed.Command == "":
			d.warn("scheduler %s in namespace %s is %s, the API server is %s: upgrade its Helm release with a chart for %s",
				deployed.Name, deployed.Namespace, deployed.Release, deployed.Due, deployed.Due)
		case deployed.Due != "":
			d.warn("scheduler %s in namespace %s is %s, the API server is %s: upgrade it with: %s",
				deployed.Name, deployed.Namespace, deployed.Release, deployed.Due, deployed.Command)
		}
	}
}
