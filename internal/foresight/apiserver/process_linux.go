package apiserver

import "syscall"

// endWithParent makes the kernel kill a process when the thread that started it ends. Go's threads
// end with the process, unless a goroutine that is locked to its thread ends.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
