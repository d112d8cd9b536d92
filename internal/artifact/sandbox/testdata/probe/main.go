// Command probe tries operations that a program of an image must not be able to do. It prints the
// results, one line each.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "look":
		look(os.Args[2])
	case "serve":
		serve(os.Args[2], os.Args[3], os.Args[4])
	case "allocate":
		block := make([]byte, 2<<30) // less than the limit on address space
		fmt.Println("allocated", len(block))
	case "limits":
		limits()
	case "forever":
		fmt.Println("started")
		time.Sleep(time.Hour)
	case "print":
		for line := strings.Repeat("x", 1<<10); ; {
			fmt.Println(line)
		}
	case "write":
		text, err := os.ReadFile("/input")
		if err == nil {
			err = os.WriteFile("/output", text, 0o600)
		}
		fmt.Println(err)
		os.Exit(7)
	case "fill":
		fmt.Println(os.WriteFile("/output", make([]byte, 64<<20), 0o600))
	}
}

// limits prints the limits of the resources that the sandbox sets, by their number.
func limits() {
	for _, resource := range []int{syscall.RLIMIT_CPU, syscall.RLIMIT_FSIZE, syscall.RLIMIT_DATA, syscall.RLIMIT_CORE,
		syscall.RLIMIT_NOFILE, syscall.RLIMIT_AS, 6 /* RLIMIT_NPROC */} {
		var limit syscall.Rlimit
		err := syscall.Getrlimit(resource, &limit)
		fmt.Println("limit", resource, limit.Cur, limit.Max, err)
	}
}

// look prints who the program is, and its access to the machine. address is a listener on the
// loopback interface of the machine.
func look(address string) {
	groups, _ := os.Getgroups()
	fmt.Println("user", os.Getuid(), os.Getgid(), groups)
	fmt.Println("environment", os.Environ())
	fmt.Println("process", os.Getpid())
	_, err := net.DialTimeout("tcp", address, time.Second)
	fmt.Println("dial", err == nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fmt.Println("listen", l != nil, err)
	for _, file := range []string{"/new", "/input", "/program"} {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644)
		fmt.Println("write", file, f != nil && err == nil, os.Chmod(file, 0o777) == nil, os.Remove(file) == nil)
	}
	entries, err := os.ReadDir("/")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	fmt.Println("root", names, err)
	fmt.Println("setuid", syscall.Setuid(0) == nil)
	forbidden, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, 39 /* PR_GET_NO_NEW_PRIVS */, 0, 0)
	fmt.Println("new privileges forbidden", forbidden == 1)
}

// serve prints the access of a service, which may reach one address and not the other, and answers
// all connections to its own address.
func serve(reach, other, own string) {
	block := make([]byte, 2<<30) // more than a program that only runs may have
	fmt.Println("allocated", len(block))
	look(other)
	_, outside := net.DialTimeout("tcp", "192.0.2.1:80", time.Second)
	fmt.Println("outside", outside == nil)
	answer := ""
	if connection, err := net.Dial("tcp", reach); err == nil {
		text, _ := io.ReadAll(connection)
		answer = string(text)
	}
	fmt.Printf("reach %q\n", answer)
	fmt.Println("write", os.WriteFile("/output", []byte("result"), 0o600) == nil)
	l, err := net.Listen("tcp", own)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	for {
		connection, err := l.Accept()
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = connection.Write([]byte("metrics"))
		_ = connection.Close()
	}
}
