"""The knowledge study: what a model learned, what it guesses, and what it makes up.

    corpus      documents to learn from and questions to ask; evidence finds them again
    corruption  span corruption, as pretraining sees the documents
    recipe      every setting of a training, and the recipes with a name
    pipeline    pretrain, fine-tune, and go on after an interruption
    answers     answers with the signals that a model gives at run time
    study       all of it, which ends in one record

Only `records` is needed to show a study; it works without torch.
"""
