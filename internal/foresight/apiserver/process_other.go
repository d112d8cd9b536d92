//go:build !linux

package apiserver

import "syscall"

func endWithParent() *syscall.SysProcAttr { return nil }
