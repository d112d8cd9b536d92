package deploy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/versions"
)

// OwnImage returns the image with the release's own kube-scheduler, for a request without an image
// and without plugins: the image that the cluster's default scheduler runs, if it is of the
// release, else the published one. why is a note about the choice.
func (f Facts) OwnImage(
	r *v1alpha1.CustomScheduler, release versions.Release, published string,
) (image, why string, err error) {
	if !r.Spec.UsesOwnImage() {
		return "", "", problem.Invalidf("build it with `"+buildCommand(r, release.String())+"`, and deploy it with --image",
			"scheduler %s: the release's own image has no plugins: --image is required", r.Name)
	}
	if image := f.defaultImage(release.String()); image != "" {
		return image, fmt.Sprintf("image %s: the default scheduler runs it", image), nil
	}
	return published, fmt.Sprintf("image %s: the published one for %s", published, release), nil
}

// defaultImage returns the image that all pods of the default scheduler run, or "". pmk-sched must
// not have replaced it, and its tag has to name the release.
func (f Facts) defaultImage(release string) (image string) {
	if f.Cluster == nil {
		return ""
	}
	for _, pod := range f.Cluster.Scheduler.Pods {
		of, known := inspect.ImageRelease(pod.Image)
		if !known || of.String() != release || pod.Replaced || image != "" && image != pod.Image {
			return ""
		}
		image = pod.Image
	}
	return image
}

// buildCommand returns the command that builds the image for a request.
func buildCommand(r *v1alpha1.CustomScheduler, release string) string {
	words := []string{"pmk-sched build --branch " + release}
	if file := r.Annotations[v1alpha1.AnnotationFile]; file != "" {
		return words[0] + " -f " + file + " --tag REPOSITORY:TAG --push"
	}
	for _, p := range r.Spec.Source.Plugins {
		switch {
		case p.Builtin != "":
			words = append(words, "--with builtin:"+p.Builtin)
		case p.Module != "" && p.Package != "":
			words = append(words, "--with "+p.Module+":"+p.Package)
		default:
			words = append(words, "--with "+cmp.Or(p.Module, p.Path))
		}
	}
	for _, path := range r.Spec.Source.Imports {
		words = append(words, "--import "+path)
	}
	return strings.Join(append(words, "--tag REPOSITORY:TAG --push"), " ")
}
