package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// unprivilegedID is the user and group ID of programs.
const unprivilegedID = 65534

// Limits for a program. kube-scheduler v1.24.3 checks a configuration with 60 MiB memory and 800
// MiB address space, most of which Go only reserves. The limit on address space is for Linux before
// 4.7, where RLIMIT_DATA does not count mapped memory.
const (
	memoryLimit       = 1 << 30
	addressSpaceLimit = 6 << 30
	fileSizeLimit     = 16 << 20
	openFilesLimit    = 256
	cpuSecondsLimit   = 120
	// processesLimit counts the processes in all programs of the same user on the machine.
	processesLimit = 1024
)

// Limits for a program that [Start] starts. Its memory is limited by the machine's memory.
const (
	serviceFileSizeLimit  = 8 << 30 // the log of a scheduler that is explained
	serviceOpenFilesLimit = 64 << 10
	serviceProcessesLimit = 8 << 10
)

// Modes of Enter.
const (
	modeIsolated = "isolated" // in new namespaces
	modeShared   = "shared"   // in the namespaces of the caller
)

// reportFD is the file descriptor to which Enter writes the reason for its failure, as a [failure];
// executing the program closes it. For a service it is a socket, through which Enter sends sockets
// first, as sentSockets.
const (
	reportFD    = 3
	sentSockets = "sockets"
)

// Kinds of failures: in the isolation, or in the program itself, which fails without isolation too.
const (
	failedToIsolate = "isolate"
	failedToExecute = "execute"
)

// entry tells Enter what to do. It is JSON in the command line.
type entry struct {
	Root string `json:"root"`
	Mode string `json:"mode"`
	// Service is set for Start, whose program reaches the addresses of Reach.
	Service bool     `json:"service,omitempty"`
	Reach   []string `json:"reach,omitempty"`
}

func (e entry) String() string {
	text, _ := json.Marshal(e) // strings
	return string(text)
}

// Enter makes this process, which [Run] started with the command line args, the program. It returns
// only if that fails.
func Enter(args []string) (status int) {
	runtime.LockOSThread() // no_new_privs is of a thread
	syscall.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	var e entry
	if len(args) < 3 || report == nil || json.Unmarshal([]byte(args[2]), &e) != nil {
		return 1
	}
	kind, err := failedToIsolate, e.isolate()
	if err == nil {
		kind, err = failedToExecute, syscall.Exec(Path(programName), append([]string{programName}, args[3:]...),
			[]string{})
	}
	_, _ = fmt.Fprintf(report, "%s\n%v", kind, err)
	return 1
}

// isolate removes access and privileges from this process that the program must not have.
func (e entry) isolate() error {
	steps := []func() error{
		func() error { return enterRoot(e.Root) }, e.limit, dropUser, forbidPrivileges,
	}
	if e.Mode == modeIsolated {
		steps = append([]func() error{
			raiseLoopback, e.connect, func() error { return makeReadOnly(e.Root) },
		}, steps...)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// raiseLoopback makes 127.0.0.1 in the new network usable: schedulers from 1.20 to 1.22 listen on
// it.
func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set up the loopback interface: %w", err)
	}
	return nil
}

// connect sends a service's sockets.
func (e entry) connect() error {
	if !e.Service {
		return nil
	}
	return sendSockets(reportFD, e.Reach)
}

// makeReadOnly mounts root on itself, read-only. Only the file for the output, which is a separate
// mount, stays writable.
func makeReadOnly(root string) error {
	for _, m := range []struct {
		what, on string
		flags    uintptr
	}{
		{"", "/", unix.MS_REC | unix.MS_PRIVATE},
		{root, root, unix.MS_BIND},
		{root + OutputPath, root + OutputPath, unix.MS_BIND},
		{"", root, unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.what, m.on, "", m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.on, err)
		}
	}
	return nil
}

func enterRoot(root string) error {
	if err := unix.Chroot(root); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	return unix.Chdir("/")
}

func (e entry) limit() error {
	limits := map[int]uint64{
		unix.RLIMIT_DATA: memoryLimit, unix.RLIMIT_AS: addressSpaceLimit, unix.RLIMIT_FSIZE: fileSizeLimit,
		unix.RLIMIT_NOFILE: openFilesLimit, unix.RLIMIT_CPU: cpuSecondsLimit, unix.RLIMIT_CORE: 0,
	}
	processes := uint64(processesLimit)
	if e.Service {
		var err error
		if limits, err = serviceLimits(); err != nil {
			return err
		}
		processes = serviceProcessesLimit
	}
	if os.Geteuid() == 0 {
		limits[unix.RLIMIT_NPROC] = processes // a user of a desktop has more
	}
	for resource, most := range limits {
		// The function in package syscall, so that Exec does not restore the number of open files.
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", resource, err)
		}
	}
	return nil
}

// serviceLimits returns the limits of a program that Start starts.
func serviceLimits() (map[int]uint64, error) {
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		return nil, fmt.Errorf("read the memory of the machine: %w", err)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("read the limit of open files: %w", err)
	}
	return map[int]uint64{
		unix.RLIMIT_DATA: machine.Totalram * uint64(machine.Unit), unix.RLIMIT_FSIZE: serviceFileSizeLimit,
		unix.RLIMIT_NOFILE: min(files.Max, serviceOpenFilesLimit), unix.RLIMIT_CORE: 0,
	}, nil
}

// dropUser changes root to the unprivileged user, which loses all capabilities. Another user has
// that ID in its namespace already.
func dropUser() error {
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop groups: %w", err)
	}
	if err := syscall.Setresgid(unprivilegedID, unprivilegedID, unprivilegedID); err != nil {
		return fmt.Errorf("drop group: %w", err)
	}
	if err := syscall.Setresuid(unprivilegedID, unprivilegedID, unprivilegedID); err != nil {
		return fmt.Errorf("drop user: %w", err)
	}
	return nil
}

// forbidPrivileges lets no program gain privileges, and ends this one with its parent; a change of
// the user resets the latter.
func forbidPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the parent process: %w", err)
	}
	return nil
}
