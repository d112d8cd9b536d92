package podstatus

import "time"

// Class is the kind of a reason why a container does not run.
type Class int

// Reason classes. The kubelet tries again after each failure; ImageAbsent and ImageName remain
// until a user intervenes.
const (
	// Starting is the class for a container that is created, and for unknown reasons.
	Starting Class = iota
	// ImagePull is a failure to find or pull the image, which may not recur.
	ImagePull
	// ImageAbsent is an image that the node does not have and that must not be pulled.
	ImageAbsent
	// ImageName is a name that is not an image name.
	ImageName
	// Config is a failure to prepare the container: a ConfigMap or Secret that the kubelet does not
	// see yet, or a user that the pod must not run as.
	Config
	// Start is a failure to create or start the container.
	Start
	// Crash is a container that has ended.
	Crash
)

// Image reports whether the container's image is the cause.
func (c Class) Image() bool { return c == ImagePull || c == ImageAbsent || c == ImageName }

// startGrace is the time for which a container may fail to start: the kubelet may see a ConfigMap
// or a Secret later than the pod.
const startGrace = 5 * time.Second

// Grace returns how long a container may wait for a reason in this class before it counts as
// failed: pull if the kubelet may still pull the image, and 0 if waiting for another attempt is
// pointless.
func (c Class) Grace(pull time.Duration) time.Duration {
	switch c {
	case ImagePull:
		return pull
	case Config, Start:
		return startGrace
	}
	return 0
}

// Preventing reports whether the container was prevented from starting. A crash is not among these
// classes: a container that has started may have ended for a good reason.
func (c Class) Preventing() bool { return c != Starting && c != Crash }

// Classify returns the class of the kubelet's or the container runtime's reason for a container
// that waits or has ended. Reasons for waiting are errors from startContainer in
// pkg/kubelet/kuberuntime/kuberuntime_container.go: reason_cache.go keeps no others, so that a
// failure of the pod's sandbox is an event only.
func Classify(reason string) Class {
	switch reason {
	// pkg/kubelet/images/types.go, and k8s.io/cri-api/pkg/errors
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed", "ImageInspectError":
		return ImagePull
	case "ErrImageNeverPull":
		return ImageAbsent
	case "InvalidImageName":
		return ImageName
	// pkg/kubelet/kuberuntime/kuberuntime_container.go, and pkg/kubelet/container/sync_result.go
	case "CreateContainerConfigError":
		return Config
	case "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return Start
	case "CrashLoopBackOff":
		return Crash
	// containerd (internal/cri/server/container_status.go), CRI-O (server/container_status.go),
	// dockershim (up to 1.23), and the kubelet for a container that the runtime has lost
	case "Completed", "Error", "OOMKilled", "Unknown", "StartError", "ContainerCannotRun", "ContainerStatusUnknown":
		return Crash
	}
	return Starting // ContainerCreating and PodInitializing (pkg/kubelet/kubelet_pods.go)
}
