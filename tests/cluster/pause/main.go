// The first process of each pod: it holds the pod's namespaces, reaps what has lost its parent, and ends when it is asked to.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 16)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range asked {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
	}
}
