package pack

import (
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Unconfirmed is the part of a request that comes from a cluster, and that the user has neither
// named nor confirmed. Every user who can write to the cluster can choose it, so that [Run] and
// [Compile] refuse the request. A caller that has asked the user sets the field to nil.
type Unconfirmed struct {
	// Origin is the place from which it was read, such as "revision 3 of my-scheduler".
	Origin string
	// Image is the name of the image to write. It is empty if code is compiled to run it here.
	Image string
	// Content are lines about the image's code and base, in the cluster's words.
	Content []string
}

// Action returns the action to confirm, such as "build and push IMAGE".
func (u *Unconfirmed) Action() string {
	switch {
	case u.Image == "":
		return "run recorded code on this machine"
	case image.IsLocal(u.Image):
		return "build " + u.Image + " and load it into containerd of this machine"
	}
	return "build and push " + u.Image
}

// Alternative returns an instruction to name the image or the code instead.
func (u *Unconfirmed) Alternative() string {
	if u.Image == "" {
		return "name the file of the scheduler with -f pmk-sched.yaml"
	}
	return "name the repository in spec.image of -f pmk-sched.yaml, or an image that was built elsewhere with --image"
}

// Check returns the error of a request that was not confirmed.
func (u *Unconfirmed) Check() error {
	if u == nil {
		return nil
	}
	return problem.Invalidf(u.Alternative(), "refusing to %s, as %s says, without confirmation", u.Action(), u.Origin)
}
