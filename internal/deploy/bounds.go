package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// RefusedImageError is returned for an image outside the allowed repositories.
type RefusedImageError struct {
	Image        string
	Repositories []string
}

// Error names the image and the repositories.
func (e *RefusedImageError) Error() string {
	return fmt.Sprintf("image %s is in none of the allowed repositories: %s", e.Image, strings.Join(e.Repositories, ", "))
}

// Hint returns a suggestion for the user.
func (e *RefusedImageError) Hint() string {
	return "use an image of an allowed repository; the administrator of the controller allows others with --allow-repository"
}

// Invalid reports that the user can fix the image's name.
func (e *RefusedImageError) Invalid() bool { return true }

// CheckRepositories returns a [RefusedImageError] if an image is outside the allowed repositories.
// It sends nothing.
func CheckRepositories(b session.Bounds, images ...string) error {
	if len(b.Repositories) == 0 {
		return nil
	}
	for _, name := range images {
		allowed, err := image.InRepositories(name, b.Repositories)
		if err != nil {
			return err
		}
		if !allowed {
			return &RefusedImageError{Image: name, Repositories: b.Repositories}
		}
	}
	return nil
}

// boundedCluster applies no object with an image outside the bounds: neither from a plan, nor from
// the revision that an undo restores.
type boundedCluster struct {
	Cluster
	bounds session.Bounds
	signed func(ctx context.Context, r pack.SignatureRequest) (pinned string, err error)
}

// bounded returns a cluster that keeps the bounds.
func bounded(c Cluster, d Deps) Cluster {
	if d.Bounds.Key == "" && len(d.Bounds.Repositories) == 0 {
		return c
	}
	return boundedCluster{Cluster: c, bounds: d.Bounds, signed: d.Signed}
}

// Apply checks the objects' images, and applies them.
func (c boundedCluster) Apply(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error) {
	var images []string
	for _, object := range objs {
		images = appendImages(images, object.Object)
	}
	if err := CheckRepositories(c.bounds, images...); err != nil {
		return nil, err
	}
	for _, name := range images {
		if c.bounds.Key == "" {
			break
		}
		pinned, err := c.signed(ctx, pack.SignatureRequest{Reference: name, Key: c.bounds.Key})
		if err == nil && pinned != name {
			err = fmt.Errorf("image %s has no digest: another image than the verified one could run", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.Cluster.Apply(ctx, objs)
}

// appendImages appends the images in value, the content of an object of any kind, in the order of
// its keys.
func appendImages(images []string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if name, isText := value[key].(string); isText && key == "image" {
				images = append(images, name)
			}
			images = appendImages(images, value[key])
		}
	case []any:
		for _, inner := range value {
			images = appendImages(images, inner)
		}
	}
	return images
}
