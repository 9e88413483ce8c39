package foreign

import (
	"fmt"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	firstWait = 500 * time.Millisecond
	mostWait  = 30 * time.Second
	// longWait follows a refusal that may end by itself or by what a person does there.
	longWait = 5 * time.Minute
	// settled is how long a connection must hold after it was accepted to count as good: SERVER_HELLO alone made earlier
	// clients hammer (fault B5).
	settled = 10 * time.Second
	// replacedMost ends of accepted connections right after one another mean that somebody else holds our id.
	replacedMost = 3
	// retryAfterMost bounds what a board may ask for.
	retryAfterMost = 24 * time.Hour
)

// End is how one connection, or the attempt at one, ended.
type End struct {
	Status     int           // HTTP, of an upgrade that was refused; 0 otherwise
	RetryAfter time.Duration // of that answer
	Code       int           // of the board's close; 0: it did not close
	Reason     string        // of the close, or what the network said
	Rejected   *Rejected     // what came before it
	Accepted   bool          // the HELLO held
	Stayed     time.Duration // since then
}

// Next is what to do after an End: come back after Wait, or not at all. Why is for people.
type Next struct {
	Stop bool
	Wait time.Duration
	Why  string
}

// Backoff remembers how often it went wrong.
type Backoff struct {
	tries    int
	replaced int
}

// forGood are refusals that no waiting mends: somebody must do something first.
var forGood = map[string]string{
	protocol.CodeKeyRevoked:       "ask the board's owner for another key",
	protocol.CodeKeyExpired:       "ask the board's owner to renew the key, then join again",
	protocol.CodeBadKey:           "look at the key: it is not one of this board's",
	protocol.CodeIdentityMismatch: "the id is another's there, or the key is bound to another: choose one with --as",
	protocol.CodeKeyRemote:        "a local key works on the board's own machine alone",
	protocol.CodeNoAgentID:        "choose an id with --as",
	protocol.CodeBadAgentID:       "choose another id with --as",
	protocol.CodeAgentRenamed:     "the agent has another name there: join with --as NAME",
	CodeSameMesh:                  "its agents are here anyway",
}

// CodeSameMesh refuses a node at a board of its own mesh: its agents would meet themselves.
const CodeSameMesh = "same-mesh"

// After takes an end. dice is a random number from 0 to 1.
func (b *Backoff) After(e End, dice float64) Next {
	if e.Accepted && e.Stayed >= settled {
		b.tries, b.replaced = 0, 0
	}
	why := e.words()
	switch {
	case e.Rejected != nil && forGood[e.Rejected.Code] != "":
		return Next{Stop: true, Why: why + ": " + forGood[e.Rejected.Code]}
	case e.Code == 4003 || e.Code == 4001:
		return Next{Stop: true, Why: why + ": ask the board's owner for a key, then join again"}
	case e.Status == 401 || e.Status == 403:
		return Next{Stop: true, Why: why + ": ask the board's owner for a key"}
	case e.Accepted && e.Stayed < settled && (e.Code == 1005 || e.Code == 1000):
		if b.replaced++; b.replaced >= replacedMost {
			return Next{Stop: true, Why: "another client holds this id there: it was replaced " + fmt.Sprint(replacedMost) + " times; end the other one, or join with --as NAME"}
		}
		return Next{Wait: jitter(mostWait, dice), Why: why}
	case e.Rejected != nil || e.Code == 4403 || e.Status == 404 || e.Status == 410:
		return Next{Wait: max(jitter(longWait, dice), min(e.RetryAfter, retryAfterMost)), Why: why}
	}
	wait := firstWait << min(b.tries, 10)
	b.tries++
	return Next{Wait: max(jitter(min(wait, mostWait), dice), min(e.RetryAfter, retryAfterMost)), Why: why}
}

// jitter spreads a wait over half of it to one and a half, so that not all come back at once.
func jitter(d time.Duration, dice float64) time.Duration {
	return d/2 + time.Duration(float64(d)*min(max(dice, 0), 1))
}

func (e *End) words() string {
	switch {
	case e.Rejected != nil:
		if e.Rejected.Reason == "" {
			return "refused there, " + e.Rejected.Code
		}
		return "refused there, " + e.Rejected.Code + ": " + e.Rejected.Reason
	case e.Status != 0:
		return fmt.Sprintf("the board's address answered %d", e.Status)
	case e.Code == 1005:
		return "the board closed the connection"
	case e.Code != 0:
		return fmt.Sprintf("the board closed the connection: %d %s", e.Code, e.Reason)
	}
	return e.Reason
}
