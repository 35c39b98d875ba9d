package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/control"
	"weir/internal/event"
	"weir/internal/fleet"
	"weir/internal/fleet/link"
	"weir/internal/linux"
	"weir/internal/policy"
)

// place says where the servers are.
type place struct{ policy, creds string }

// load reads the fleet of the policy, or of the usual file.
func (p *place) load(usual string) (policy.Fleet, error) {
	all, err := policy.Load(cmp.Or(p.policy, usual))
	if err != nil {
		return policy.Fleet{}, err
	}
	all.Fleet.CredsFile = cmp.Or(p.creds, all.Fleet.CredsFile)
	return all.Fleet, nil
}

// connect connects a person.
func (p *place) connect(cmd *cobra.Command) (*link.Servers, error) {
	f, err := p.load(own("fleet.yaml"))
	if err != nil {
		return nil, err
	}
	return link.Connect(f, cmd.CommandPath(), false, func(string) {})
}

func (p *place) initCommand() *cobra.Command {
	var l link.Limits
	size := "10GiB"
	cmd := &cobra.Command{
		Use:   "init",
		Short: "make at the servers what nodes and people use, with limits",
		Long:  "Makes the stream of events, and the buckets of questions and orders, or gives those that are there these limits. It needs an account that may.",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bytes, ok := policy.ParseBytes(size)
			if l.Bytes = bytes; !ok || bytes < 1 || l.Age < time.Hour || l.Replicas < 1 || l.Replicas > 5 {
				return control.Errorf(control.Usage, "accepted are --bytes as 10GiB, --age from 1h, and --replicas from 1 to 5")
			}
			s, err := p.connect(cmd)
			if err != nil {
				return err
			}
			defer s.Close()
			return s.Init(cmd.Context(), l)
		},
	}
	cmd.Flags().DurationVar(&l.Age, "age", 30*24*time.Hour, "how long events are kept, as a `time` such as 720h")
	cmd.Flags().StringVar(&size, "bytes", size, "at most this `size` of events; the oldest go first")
	cmd.Flags().IntVar(&l.Replicas, "replicas", 1, "on how many servers everything is, as a `number` to 5: 3 in a cluster")
	return cmd
}

func (p *place) runCommand() *cobra.Command {
	var run, state string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "be the link of this node: carry events and questions to the servers, and answers to the sensor",
		Long: `Carries what the sensor of this node logs and asks to the servers, and what people signed to the sensor, which checks it. It needs no rights but
to look at the control socket: run it as a user of a group of control.look. It goes on by itself when the servers, or the sensor, are away.`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := p.load("/etc/weir/policy.yaml")
			if err != nil {
				return err
			}
			node, err := fleet.Node(f)
			if err != nil {
				return err
			}
			if err := linux.MkdirAll(state, 0o700); err != nil {
				return fmt.Errorf("make the state's directory: %w", err)
			}
			say := func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", cmd.CommandPath(), event.Visible(text)) }
			s, err := link.Connect(f, "weir-fleet of "+node, true, say)
			if err != nil {
				return err
			}
			defer s.Close()
			return s.Run(cmd.Context(), link.Node{Name: node, Sensor: control.NewClient(run), State: state, Say: say})
		},
	}
	cmd.Flags().StringVar(&run, "run", control.DefaultDir, "`directory` of the sensor's control socket")
	cmd.Flags().StringVar(&state, "state", "/var/lib/weir-fleet", "`directory` of what outlives a reboot: where the events go on")
	return cmd
}

func (p *place) eventsCommand() *cobra.Command {
	var node string
	var follow bool
	cmd := &cobra.Command{
		Use:   "events",
		Short: "the events of a node, or of all, as JSON lines: those of each node in their order",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := p.connect(cmd)
			if err != nil {
				return err
			}
			defer s.Close()
			err = s.Events(cmd.Context(), node, follow, func(from string, line []byte) error {
				text := event.Visible(string(line)) // whoever has the servers may have written it
				if node == "" {
					text = event.Visible(from) + " " + text
				}
				_, err := io.WriteString(cmd.OutOrStdout(), text+"\n")
				return err
			})
			if follow && errors.Is(err, context.Canceled) { // how following ends
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "of this `node` alone; else each line begins with its node")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "and those to come")
	return cmd
}
