//go:build !linux

package node

import (
	"sync"
	"time"
)

// uptime counts from the start of this process; whether it sleeps with the machine is the system's to say.
func uptime() time.Duration { return time.Since(processBegan) }

// bootID is another in every process, since uptime begins anew.
var bootID = sync.OnceValue(func() string { return randomText(8) })

var processBegan = time.Now()
