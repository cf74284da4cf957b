"""The knowledge study: what a model learned, what it guesses, and what it makes up.

    plans            every setting of a study and of its trainings
    corpus           documents to learn from and questions to ask; evidence finds them again
    corruption       span corruption, as pretraining sees the documents; reader finds the facts
    training         pretrain and fine-tune, as runs that can be resumed
    answers          answers with the signals that a model gives at run time
    judgement        what each answer is; confidence and names measure it
    knowledge_study  all of it, which ends in one record (findings)
    capacity         bits stored in a parameter, on people drawn for it
    pretrained       a model that others have trained, asked our own questions

Only `findings` is needed to show a study; it works without torch.
"""
