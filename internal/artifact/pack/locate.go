package pack

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// digestTimeout bounds the request for a digest: the nodes may reach a registry that this machine
// does not.
const digestTimeout = 10 * time.Second

// LocateRequest names an image to locate.
type LocateRequest struct {
	// Reference names the image, and PullPolicy is its pods' pull policy, which may be empty.
	Reference, PullPolicy string
	// Here is set if one of the pods runs on this machine.
	Here bool
	// Warn prints a warning.
	Warn func(string)
}

// Located is an image as the nodes get it.
type Located struct {
	// Name has the image's digest, so that the nodes run the image that is checked although its tag
	// may move. It has none if the nodes have the image already: it is not in a registry, or the pull
	// policy lets them use a local image and this node has it. It also has none, with a warning, if
	// the registry does not return the digest.
	Name string
	// Architectures are the architectures of the image in its registry, or nil if unknown.
	Architectures []string
	// Missing is set if neither this node nor the registry has the image.
	Missing error
}

// Locate looks for an image in this machine's containerd and in its registry.
func Locate(ctx context.Context, r LocateRequest) (Located, error) {
	registry, err := image.RegistryOf(r.Reference)
	if err != nil {
		return Located{}, err
	}
	found := Located{Name: r.Reference}
	onNode, unread := image.InContainerd(ctx, r.Reference)
	switch {
	case registry == "localhost":
		found.Missing = r.missing(ctx, onNode || unread != nil, "localhost is no registry")
		return found, ctx.Err()
	case r.PullPolicy == "Never":
		found.Missing = r.missing(ctx, onNode || unread != nil, "the pull policy Never keeps the node from pulling it")
		return found, ctx.Err()
	case r.PullPolicy != "Always" && onNode:
		return found, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	pinned, architectures, err := image.Resolve(limited, r.Reference, authn.DefaultKeychain)
	switch {
	case err == nil:
		return Located{Name: pinned, Architectures: architectures}, nil
	case ctx.Err() != nil || problem.IsInvalid(err):
		return Located{}, err
	case image.IsNotFound(err):
		where := "not"
		if unread == nil {
			where = "neither on this node nor"
		}
		found.Missing = problem.Errorf(fmt.Sprintf("check the name and the tag, and push the image; if the registry hides it, "+
			"log in with `docker login %s`; if every node has it, use --pull-policy Never", registry),
			"image %s is %s in registry %s", r.Reference, where, registry)
	case !strings.Contains(r.Reference, "@"):
		r.Warn(fmt.Sprintf("the nodes may run another image than the checked one if the tag of %s moves: %v", r.Reference, err))
	}
	return found, nil
}

// missing returns an error if the image is not on this node, whose kubelet cannot pull it. It
// returns nil if no pod runs here, or if the kubelet uses another runtime, which may have it.
func (r LocateRequest) missing(ctx context.Context, present bool, reason string) error {
	if present || !r.Here {
		return nil
	}
	if used, err := image.ContainerdHasImages(ctx); err != nil || !used {
		return nil //nolint:nilerr // another runtime, which the kubelet knows
	}
	return problem.Errorf("load it on each node of the scheduler: `pmk-sched build --load containerd`",
		"image %s is not on this node, and %s", r.Reference, reason)
}
