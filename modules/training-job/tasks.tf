# What a run does: its processing steps, one after the other, and then its
# attempts. Each is a task, and each task a SageMaker job of one of three kinds.
# definition.tf makes the same group of states of every task; what differs from
# kind to kind is said here and nowhere else.
locals {
  _attempts_are = var.tuning == null ? "training" : "tuning"

  _kinds = {
    training = {
      # As in create<api> and describe<api>, and in the field <api>Name.
      api    = "TrainingJob"
      answer = {}
      status = "$.job.TrainingJobStatus"
      success = {
        And = [
          { Variable = "$.job.TrainingJobStatus", StringEquals = "Completed" },
          { Variable = "$.job.SecondaryStatus", StringEquals = "Completed" },
        ]
      }
      # Other states that end a job, and where each leads.
      ends    = {}
      failure = "classify"
      states  = local._training_states
    }

    # A search that SageMaker calls Completed and that has a best trial is a
    # success, whatever happened to the others.
    tuning = {
      api    = "HyperParameterTuningJob"
      answer = {}
      status = "$.job.HyperParameterTuningJobStatus"
      success = {
        And = [
          { Variable = "$.job.HyperParameterTuningJobStatus", StringEquals = "Completed" },
          { Variable = "$.job.BestTrainingJob.FinalHyperParameterTuningJobObjectiveMetric", IsPresent = true },
        ]
      }
      ends    = { Stopped = "tuning stopped" }
      failure = "trials"
      states  = local._tuning_states
    }

    # A processing job has one status, which is both of a training job's.
    processing = {
      api = "ProcessingJob"
      answer = {
        "TrainingJobName.$"   = "$.ProcessingJobName"
        "TrainingJobStatus.$" = "$.ProcessingJobStatus"
        "SecondaryStatus.$"   = "$.ProcessingJobStatus"
        "processing.$"        = "$"
      }
      status  = "$.job.TrainingJobStatus"
      success = { Variable = "$.job.TrainingJobStatus", StringEquals = "Completed" }
      ends    = {}
      failure = "processing: failed"
      states  = local._processing_states
    }
  }

  # name: in front of the names of its states. record: its key in the record of
  # the run. job: the name of its SageMaker job. done: the state after success.
  # ends: statuses that end this task's job and lead elsewhere than its kind says.
  # next: the task that follows a failure, by class. release: the targets among
  # them for which instances are given back.
  _tasks = concat(
    [
      for i, s in var.processing : {
        name    = local._step_labels[i]
        kind    = "processing"
        record  = "p${i}"
        job     = local._processing_job[i]
        comment = "${s.instance_count} x ${s.instance_type}"
        request = local.step_requests[i]
        done    = "${local._step_labels[i]}: completed"
        ends    = {}
        next    = {}
        release = []
      }
    ],
    [
      for i, a in var.attempts : {
        name    = a.name
        kind    = local._attempts_are
        record  = tostring(i)
        job     = local._training_job[i]
        comment = "${var.tuning == null ? "" : "${local._trials} x "}${join(": ", compact(["${local._machine_words[i]}${a.spot ? " spot" : ""}", a.reason]))}"
        request = local.attempt_requests[i]
        done    = var.tuning == null ? "completed" : "best"
        ends    = { for status in ["Stopped"] : status => "stopped" if var.tuning == null && a.max_pending_seconds != null }
        next    = a.next
        release = local._releases[i]
      }
    ],
  )

  # Requests and names of the attempts' jobs, whichever kind they are.
  attempt_requests = [for i, request in local.requests : try(local.tuning_requests[i], request)]
  _training_job    = [for i, a in var.attempts : "States.Format('{}-${i}{}', $$.Execution.Name, $.repeat.letter)"]
  _processing_job  = [for i, s in var.processing : "States.Format('{}-p${i}{}', $$.Execution.Name, $.repeat.letter)"]
  _step_labels     = [for s in var.processing : "processing ${s.name}"]

  # Warm instances that the next attempt cannot use are given back.
  _attempt_shapes = [for i, a in var.attempts : "${local._machine_words[i]} ${local._attempts[i].volume_size_gb}"]
  _attempt_index  = { for i, a in var.attempts : a.name => i... }
  _releases = [
    for i, a in var.attempts : [
      for target in distinct(values(a.next)) : target
      if local._attempts[i].keep_alive_seconds > 0 && try(local._attempt_shapes[local._attempt_index[target][0]] != local._attempt_shapes[i], false)
    ]
  ]
}
