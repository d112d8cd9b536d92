package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/ownership"
	"github.com/pmk-sched/pmk-sched/versions"
)

// deployed looks for the schedulers that pmk-sched has put beside the default
// one. Of which release they are stands on their Deployments: no image is pulled
// for it.
func (d *detector) deployed(ctx context.Context) {
	found, err := d.deployments(ctx, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		found, err = d.deployments(ctx, d.o.SchedulerNamespace)
	}
	if err != nil {
		d.unread(err, "list deployments", "which schedulers pmk-sched has deployed is unknown")
		return
	}
	for i := range found {
		d.info.Scheduler.Deployed = append(d.info.Scheduler.Deployed, describeDeployed(&found[i], d.info.Release))
	}
	slices.SortFunc(d.info.Scheduler.Deployed, func(a, b DeployedScheduler) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// deployments lists pmk-sched's own Deployments page by page.
func (d *detector) deployments(ctx context.Context, namespace string) ([]appsv1.Deployment, error) {
	var found []appsv1.Deployment
	options := metav1.ListOptions{LabelSelector: ownership.LabelManagedBy + "=" + ownership.Manager + "," + ownership.LabelName + "!=" + ownership.Extender, Limit: objectPage}
	for {
		page, err := d.apps.Deployments(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// describeDeployed compares a deployed scheduler with the release of the API
// server. Patches of one minor go together.
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
	described.Command = mend(described, deployedFlags(deployment))
	return described
}

// deployedFlags are the flags that a scheduler was deployed with. What is not a
// flag is left out: anybody who may change the Deployment may have written it.
func deployedFlags(deployment *appsv1.Deployment) []string {
	var flags []string
	if err := json.Unmarshal([]byte(deployment.Annotations[ownership.AnnotationFlags]), &flags); err != nil {
		return nil
	}
	return slices.DeleteFunc(flags, func(flag string) bool { return !strings.HasPrefix(flag, "--") })
}

// mend is the command line that replaces a deployed scheduler by one of the
// release that is due: a new image, and a deployment as before.
func mend(deployed DeployedScheduler, flags []string) string {
	image := retag(deployed.Image, deployed.Release, deployed.Due)
	program := []string{"pmk-sched"}
	if deployed.Namespace != kubeSystem {
		program = append(program, "-n", deployed.Namespace)
	}
	build := slices.Concat(program, []string{"build"})
	var deploys []string
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if name == "--file" || name == "--with" || name == "--import" {
			build = append(build, flag)
		}
		if name != "--import" { // it tells what to compile, no more
			deploys = append(deploys, flag)
		}
	}
	build = append(build, "--branch", deployed.Due, "--tag", image)
	if strings.HasPrefix(image, "localhost/") {
		build = append(build, "--busybox", "/bin/busybox", "--load", "containerd")
	} else {
		build = append(build, "--push")
	}
	deploy := slices.Concat(program, []string{"deploy", "--name", deployed.Name, "--image", image, "--branch", deployed.Due}, deploys)
	return words(build) + " && " + words(deploy)
}

// retag returns the name of the image for another release: the release in its tag
// is replaced; a tag that names none, or a digest, gives way to the release.
func retag(image, from, to string) string {
	image, _, digested := strings.Cut(image, "@")
	repository, tag := image, ""
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		repository, tag = image[:colon], image[colon+1:]
	}
	from, bare := strings.TrimPrefix(from, "v"), strings.TrimPrefix(to, "v")
	if digested || !strings.Contains(tag, from) {
		return repository + ":" + to
	}
	return repository + ":" + strings.Replace(tag, from, bare, 1)
}

// plain is what a shell takes for one word as it stands.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// words writes a command for a shell.
func words(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		if quoted[i] = word; !plain.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// judgeDeployed warns of deployed schedulers that an upgrade of the cluster has
// left behind.
func (d *detector) judgeDeployed() {
	for _, deployed := range d.info.Scheduler.Deployed {
		switch {
		case deployed.Release == "":
			d.warn("scheduler %s in namespace %s does not say of which release it is", deployed.Name, deployed.Namespace)
		case deployed.Due != "":
			d.warn("scheduler %s in namespace %s is of %s and the API server of %s: replace it with: %s",
				deployed.Name, deployed.Namespace, deployed.Release, deployed.Due, deployed.Command)
		}
	}
}
